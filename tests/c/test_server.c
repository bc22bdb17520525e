/* The session server, request by request: what it answers, in which order, and what it does only once. */
#include "server_host.h"
#include "uaccel_log.h"

static void test_boot(void)
{
    sent.used = 0;
    uaccel_server_start();
    CHECK_EQ(sent.bytes[0], 0);
    take_apart();
    expect_only(UACCEL_TYPE_BOOT, 0);
    CHECK_EQ(packets[0].token, 0);
    CHECK_EQ(uaccel_get16(packets[0].body), UACCEL_PROTOCOL_VERSION);
}

static void test_hello(void)
{
    greet();
    const uint8_t *const body = packets[0].body;
    CHECK_EQ(packets[0].token, TOKEN);
    CHECK_EQ(packets[0].bytes, UACCEL_HELLO_REPLY_BYTES + 5u);
    CHECK_EQ(uaccel_get16(body + UACCEL_HELLO_REPLY_VERSION_AT), UACCEL_PROTOCOL_VERSION);
    CHECK_EQ(uaccel_get16(body + UACCEL_HELLO_REPLY_FLAGS_AT), UACCEL_FLAG_OBSERVE);
    CHECK_EQ(uaccel_get16(body + UACCEL_HELLO_REPLY_BODY_BYTES_AT), UACCEL_BODY_BYTES);
    CHECK_EQ(uaccel_get32(body + UACCEL_HELLO_REPLY_RECEIVE_BYTES_AT), UACCEL_PORT_RECEIVE_BYTES);
    CHECK_EQ(uaccel_get16(body + UACCEL_HELLO_REPLY_LAYERS_AT), 3);
    CHECK_EQ(uaccel_get32(body + UACCEL_HELLO_REPLY_INPUT_BYTES_AT), INPUT_BYTES);
    CHECK_EQ(uaccel_get32(body + UACCEL_HELLO_REPLY_OUTPUT_BYTES_AT), OUTPUT_BYTES);
    CHECK_EQ(uaccel_get32(body + UACCEL_HELLO_REPLY_TICKS_PER_SECOND_AT), 1000);
    CHECK_EQ(body[UACCEL_HELLO_REPLY_MODEL_HASH_AT + 31], MODEL_FILL);
    CHECK_EQ(body[UACCEL_HELLO_REPLY_BUILD_AT + 7], 8);
    CHECK(memcmp(body + UACCEL_HELLO_REPLY_BYTES, "known", 5) == 0);
}

static void test_hello_again_changes_nothing(void)
{
    const uint8_t version[2] = {UACCEL_PROTOCOL_VERSION, 0};
    greet();
    ask_write(1, 0, "a", 1);
    ask(UACCEL_TYPE_HELLO, 0, version, sizeof version);
    expect_only(UACCEL_TYPE_HELLO_REPLY, 0);
    ask_write(2, 0, "b", 1);
    expect_only(UACCEL_TYPE_WRITE_REPLY, 2);
}

static void test_hello_of_another_version_begins_nothing(void)
{
    const uint8_t version[2] = {UACCEL_PROTOCOL_VERSION + 1, 0};
    uaccel_server_start();
    sent.used = 0;
    ask(UACCEL_TYPE_HELLO, 0, version, sizeof version);
    expect_only(UACCEL_TYPE_HELLO_REPLY, 0);
    ask_write(1, 0, "a", 1);
    expect_error(1, UACCEL_ERROR_STALE, 0);
    ask(UACCEL_TYPE_HELLO, 0, version, 1);
    expect_only(UACCEL_TYPE_HELLO_REPLY, 0);
}

static void test_tokens(void)
{
    greet();
    put(UACCEL_TYPE_VERBOSITY, 1, TOKEN + 1, "\2", 1);
    serve();
    expect_error(1, UACCEL_ERROR_STALE, TOKEN);
    CHECK_EQ(packets[0].token, TOKEN + 1);
    put(UACCEL_TYPE_VERBOSITY, 1, 0, "\2", 1);
    serve();
    CHECK_EQ(packet_count, 0);
}

/* A line that sends back what the device says must not make it talk to itself. */
static void test_its_own_words_are_overlooked(void)
{
    greet();
    for (uint32_t type = 0x80; type <= 0xFF; ++type) {
        put((uint8_t)type, 1, TOKEN, "12345678", 8);
        put((uint8_t)type, 0, TOKEN + 9, "12345678", 8);
    }
    serve();
    CHECK_EQ(packet_count, 0);
}

static void test_order(void)
{
    greet();
    put(UACCEL_TYPE_VERBOSITY, 2, TOKEN, "\2", 1);
    put(UACCEL_TYPE_VERBOSITY, 3, TOKEN, "\2", 1);
    serve();
    expect_only(UACCEL_TYPE_EXPECT, 1); /* told once for the whole gap */
    put(UACCEL_TYPE_VERBOSITY, 1, TOKEN, "\2", 1);
    put(UACCEL_TYPE_VERBOSITY, 2, TOKEN, "\2", 1);
    put(UACCEL_TYPE_VERBOSITY, 4, TOKEN, "\2", 1);
    serve();
    CHECK_EQ(packet_count, 3);
    expect_packet(0, UACCEL_TYPE_VERBOSITY_REPLY, 1);
    expect_packet(1, UACCEL_TYPE_VERBOSITY_REPLY, 2);
    expect_packet(2, UACCEL_TYPE_EXPECT, 3);
}

static void test_sequence_numbers_go_round(void)
{
    greet();
    for (uint32_t i = 1; i <= 0x10005u; ++i) {
        ask(UACCEL_TYPE_VERBOSITY, i & 0xFFFFu, "\2", 1);
        expect_only(UACCEL_TYPE_VERBOSITY_REPLY, i & 0xFFFFu);
    }
    ask(UACCEL_TYPE_VERBOSITY, 5u + 0x8000u, "\2", 1); /* half a circle ahead: too early */
    expect_only(UACCEL_TYPE_EXPECT, 6);
    ask(UACCEL_TYPE_VERBOSITY, 6u + 0x8000u, "\2", 1); /* half a circle behind: served long ago */
    expect_only(UACCEL_TYPE_VERBOSITY_REPLY, 6u + 0x8000u);
}

static void test_damage_is_told(void)
{
    greet();
    memcpy(arrived.bytes, "\3\1\1\0\5\5\0", 7);
    arrived.used = 7;
    serve();
    CHECK_EQ(packet_count, 2);
    expect_packet(1, UACCEL_TYPE_EXPECT, 1);
    overrun = true;
    put(UACCEL_TYPE_VERBOSITY, 1, TOKEN, "\2", 1);
    serve();
    expect_only(UACCEL_TYPE_EXPECT, 1);
    uaccel_server_start(); /* without a session there is nobody to tell */
    sent.used = 0;
    memcpy(arrived.bytes, "\3\1\1\0", 4);
    arrived.used = 4;
    serve();
    CHECK_EQ(packet_count, 0);
}

static void test_write(void)
{
    static const uint8_t data[INPUT_BYTES + 1] = {1, 2, 3};
    greet();
    ask_write(1, 0, data, INPUT_BYTES);
    expect_only(UACCEL_TYPE_WRITE_REPLY, 1);
    CHECK_EQ(device_wave[2], 3);
    ask_write(2, WAVE - 1, "\x7F\x34\x12", 3); /* the end of one tensor, and the beginning of the next */
    expect_only(UACCEL_TYPE_WRITE_REPLY, 2);
    CHECK_EQ(device_wave[WAVE - 1], 127);
    CHECK_EQ(device_weights[0], 0x1234);
    ask_write(3, INPUT_BYTES - 2, "\x78\x56", 2);
    CHECK_EQ(device_weights[SUMS - 1], 0x5678);
    ask_write(4, 0, data, INPUT_BYTES + 1);
    expect_error(4, UACCEL_ERROR_RANGE, INPUT_BYTES);
    ask_write(5, INPUT_BYTES, data, 1);
    expect_error(5, UACCEL_ERROR_RANGE, INPUT_BYTES);
    ask_write(6, 0xFFFFFFFFu, data, 2);
    expect_error(6, UACCEL_ERROR_RANGE, INPUT_BYTES);
    ask_write(7, INPUT_BYTES, data, 0);
    expect_only(UACCEL_TYPE_WRITE_REPLY, 7);
    CHECK_EQ(device_wave[0], 1);
    CHECK_EQ(device_weights[SUMS - 1], 0x5678);
}

static void test_a_repeated_write_is_answered_and_not_done(void)
{
    greet();
    ask_write(1, 0, "\1", 1);
    ask_write(2, 0, "\2", 1);
    ask_write(1, 0, "\1", 1);
    expect_only(UACCEL_TYPE_WRITE_REPLY, 1);
    CHECK_EQ(device_wave[0], 2);
}

static void test_run(void)
{
    greet();
    const int before = computed;
    ask_run(1, 5, 3, false);
    CHECK_EQ(packet_count, 3);
    expect_packet(0, UACCEL_TYPE_STARTED, 1);
    expect_packet(1, UACCEL_TYPE_STARTED, 1);
    expect_packet(2, UACCEL_TYPE_RUN_REPLY, 1);
    CHECK_EQ(computed - before, 3);
    const uint8_t *const body = packets[2].body;
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_STATUS_AT), 0);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_TICKS_AT), 30);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_LEAST_TICKS_AT), 10);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_INSTRUCTIONS_AT), 0xFFFFFFFF);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_INSTRUCTIONS_AT + 4), 0xFFFFFFFF);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_STACK_BYTES_AT), 321);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_CALLS_AT), 3 * 2);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_CYCLES_AT), 3 * WAVE);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_CYCLES_AT + 4), 0);
    CHECK_EQ(packets[2].bytes, UACCEL_RUN_REPLY_BYTES);
    const uint32_t crc = uaccel_crc32(uaccel_crc32(0, device_mask, sizeof device_mask), device_sums, sizeof device_sums);
    CHECK_EQ(uaccel_get32(body + UACCEL_RUN_REPLY_OUTPUT_CRC_AT), crc);
    ask_run(2, 6, 0, false); /* at least once */
    CHECK_EQ(computed - before, 4);
}

static void test_a_repeated_run_is_answered_and_not_done(void)
{
    greet();
    ask_run(1, 5, 1, false);
    const struct packet first = packets[2];
    const int before = computed;
    ask_run(1, 5, 1, false);
    expect_only(UACCEL_TYPE_RUN_REPLY, 1);
    CHECK(memcmp(packets[0].body, first.body, first.bytes) == 0);
    ask_run(2, 6, 1, false);
    ask_run(1, 5, 1, false);
    expect_error(1, UACCEL_ERROR_FORGOTTEN, 0);
    CHECK_EQ(computed - before, 1);
}

static void test_run_on_other_inputs_than_were_meant(void)
{
    greet();
    const int before = computed;
    uint8_t body[UACCEL_RUN_BYTES] = {1};
    const uint32_t crc = input_crc();
    uaccel_put32(body + UACCEL_RUN_INPUT_CRC_AT, crc ^ 1u);
    ask(UACCEL_TYPE_RUN, 1, body, sizeof body);
    CHECK_EQ(packet_count, 3);
    expect_packet(2, UACCEL_TYPE_ERROR, 1);
    CHECK_EQ(packets[2].body[UACCEL_ERROR_CODE_AT], UACCEL_ERROR_INPUT);
    CHECK_EQ(uaccel_get32(packets[2].body + UACCEL_ERROR_DETAIL_AT), crc);
    ask(UACCEL_TYPE_RUN, 1, body, sizeof body);
    expect_error(1, UACCEL_ERROR_INPUT, crc);
    CHECK_EQ(computed, before);
}

static void test_a_run_that_fails(void)
{
    const int8_t poison[2] = {POISON, POISON};
    greet();
    ask_write(1, 0, poison, 2);
    const int before = computed;
    ask_run(2, 1, 5, false);
    CHECK_EQ((int32_t)uaccel_get32(packets[2].body + UACCEL_RUN_REPLY_STATUS_AT), FAILURE);
    CHECK_EQ(computed - before, 1);
    ask_read(3, UACCEL_OBJECT_OUTPUTS, 0, 1, 0, 1);
    expect_error(3, UACCEL_ERROR_RUN, 0);
    ask_read(4, UACCEL_OBJECT_LAYERS, 0, 0, 0, 99);
    expect_packet(2, UACCEL_TYPE_ERROR, 4);
    CHECK_EQ(packets[2].body[UACCEL_ERROR_CODE_AT], UACCEL_ERROR_MODEL);
    ask_write(5, 0, "\0\0", 2);
}

/* The driver's code and words arrive, and arrive again. */
static void test_an_accelerator_that_fails(void)
{
    int16_t poison[SUMS];
    greet();
    for (uint32_t i = 0; i < SUMS; ++i) {
        poison[i] = POISON;
    }
    ask_write(1, WAVE, poison, sizeof poison);
    for (int i = 0; i < 2; ++i) {
        ask_run(2, 1, 5, false);
        const struct packet *const reply = &packets[packet_count - 1];
        const uint32_t status = uaccel_get32(reply->body + UACCEL_RUN_REPLY_STATUS_AT);
        CHECK_EQ(UACCEL_FAILED_LAYER(status), 2);
        CHECK_EQ(UACCEL_FAILED_CODE(status), STALLED);
        CHECK_EQ(reply->bytes, UACCEL_RUN_REPLY_BYTES + strlen(SAYS));
        CHECK(memcmp(reply->body + UACCEL_RUN_REPLY_BYTES, SAYS, strlen(SAYS)) == 0);
    }
    ask_read(3, UACCEL_OBJECT_TIMES, 0, 0, 0, 99);
    const struct packet *const error = &packets[packet_count - 1];
    CHECK_EQ(uaccel_get32(error->body + UACCEL_ERROR_DETAIL_AT), (uint32_t)uaccel_layer_failed(2, STALLED));
    CHECK(memcmp(error->body + UACCEL_ERROR_BYTES, SAYS, strlen(SAYS)) == 0);
    memset(device_weights, 0, sizeof device_weights);
    ask_run(4, 2, 1, false);
    CHECK_EQ(packets[2].bytes, UACCEL_RUN_REPLY_BYTES); /* it says nothing of an earlier one */
}

static void test_a_drivers_codes(void)
{
    static const int32_t odd[] = {0x7FFF, 0x8000, -0x8001, INT32_MIN, INT32_MAX};
    static const int32_t codes[] = {0, 1, -1, 64, 0x7FFE, -0x8000};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; ++i) {
        CHECK_EQ(UACCEL_FAILED_CODE(uaccel_layer_failed(0, odd[i])), UACCEL_CODE_OTHER);
    }
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; ++i) {
        const int32_t status = uaccel_layer_failed(0x7FFE, codes[i]);
        CHECK(status < -65536);
        CHECK_EQ(UACCEL_FAILED_CODE(status), codes[i]);
        CHECK_EQ(UACCEL_FAILED_LAYER(status), 0x7FFE);
    }
    CHECK_EQ(UACCEL_FAILED_LAYER(uaccel_layer_failed(0xFFFF, 1)), 0x7FFE);
    CHECK_EQ(UACCEL_FAILED_LAYER(uaccel_layer_failed(3, -1)), 3);
}

static void test_accounts(void)
{
    greet();
    ask_read(1, UACCEL_OBJECT_ACCOUNTS, 0, 0, 0, 0xFFFFFFFFu);
    expect_packet(0, UACCEL_TYPE_DATA, 1);
    CHECK_EQ(packets[0].bytes, UACCEL_DATA_BYTES + 4); /* no inference, and so no layer */
    ask_run(2, 1, 3, false);
    ask_read(3, UACCEL_OBJECT_ACCOUNTS, 0, 0, 0, 0xFFFFFFFFu);
    CHECK_EQ(packet_count, 3);
    CHECK_EQ(uaccel_get32(packets[0].body + UACCEL_DATA_BYTES), 3);
    const uint8_t *const record = packets[1].body + UACCEL_DATA_BYTES;
    CHECK_EQ(packets[1].bytes, UACCEL_DATA_BYTES + 18);
    CHECK_EQ(uaccel_get16(record), 2);
    CHECK_EQ(uaccel_get32(record + 2), 3 * 2);
    CHECK_EQ(uaccel_get32(record + 6), 3 * WAVE);
    CHECK_EQ(uaccel_get32(record + 14), 0);
    CHECK_EQ(uaccel_get32(packets[2].body + UACCEL_READ_REPLY_OBJECT_BYTES_AT), 4 + 18);
    uaccel_account_layer(3); /* beyond the model's layers: in the sum alone */
    uaccel_account(1, 1);
    CHECK_EQ(device_accounts[2].calls, 6);
    uaccel_account_fallback(0); /* counts although no accelerator was called */
    ask_read(4, UACCEL_OBJECT_ACCOUNTS, 0, 0, 0, 0xFFFFFFFFu);
    CHECK_EQ(device_accounts[0].fallbacks, 1);
}

/* What is longer than there is room for is cut off, not written elsewhere. */
static void test_a_long_failure(void)
{
    char text[200];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    uaccel_account_failure(text);
    CHECK_EQ(strlen(uaccel_account_failure_text()), UACCEL_FAILURE_BYTES - 1);
}

static void test_run_and_send_the_outputs(void)
{
    greet();
    ask_run(1, 7, 1, true);
    CHECK_EQ(packet_count, 5);
    expect_packet(2, UACCEL_TYPE_DATA, 1);
    expect_packet(3, UACCEL_TYPE_DATA, 1);
    expect_packet(4, UACCEL_TYPE_RUN_REPLY, 1);
    CHECK_EQ(uaccel_get32(packets[2].body), 0);
    CHECK(memcmp(packets[2].body + UACCEL_DATA_BYTES, device_mask, MASK) == 0);
    CHECK_EQ(uaccel_get32(packets[3].body), MASK);
    CHECK(memcmp(packets[3].body + UACCEL_DATA_BYTES, device_sums, 12) == 0);
    ask_run(1, 7, 1, true);
    expect_only(UACCEL_TYPE_RUN_REPLY, 1); /* again: the outputs can be read, they are not sent a second time */
}

static void test_read_outputs(void)
{
    greet();
    ask_run(1, 7, 1, false);
    ask_read(2, UACCEL_OBJECT_OUTPUTS, 0, 7, MASK - 1, 13);
    CHECK_EQ(packet_count, 3);
    expect_packet(0, UACCEL_TYPE_DATA, 2);
    expect_packet(1, UACCEL_TYPE_DATA, 2);
    expect_packet(2, UACCEL_TYPE_READ_REPLY, 2);
    CHECK_EQ(packets[0].bytes, UACCEL_DATA_BYTES + 1u);
    CHECK(memcmp(packets[1].body + UACCEL_DATA_BYTES, device_sums, 12) == 0);
    CHECK_EQ(uaccel_get32(packets[2].body), OUTPUT_BYTES);
    ask_read(3, UACCEL_OBJECT_OUTPUTS, 0, 6, 0, 12);
    expect_error(3, UACCEL_ERROR_RUN, 7);
    ask_read(2, UACCEL_OBJECT_OUTPUTS, 0, 7, 0, 12); /* again: the outputs are still those */
    CHECK_EQ(packet_count, 2);
    ask_read(4, UACCEL_OBJECT_TIMES, 0, 0, 0, 0); /* runs the model: they are nobody's now */
    ask_read(5, UACCEL_OBJECT_OUTPUTS, 0, 7, 0, 12);
    expect_error(5, UACCEL_ERROR_RUN, 0);
}

static void test_ranges(void)
{
    static const struct {
        uint32_t offset, length, got;
    } ranges[] = {{0, 46, 46}, {0, 0, 0},     {45, 1, 1},          {46, 1, 0},
                  {5, 7, 7},   {42, 1000, 4}, {0xFFFFFFFFu, 9, 0}, {41, 0xFFFFFFFFu, 5}};
    greet();
    for (uint32_t i = 0; i < sizeof ranges / sizeof ranges[0]; ++i) {
        uint32_t got = 0;
        ask_read(i + 1, UACCEL_OBJECT_INPUTS, 0, 0, ranges[i].offset, ranges[i].length);
        for (uint32_t k = 0; k + 1 < packet_count; ++k) {
            expect_packet(k, UACCEL_TYPE_DATA, i + 1);
            CHECK_EQ(uaccel_get32(packets[k].body), ranges[i].offset + got);
            got += packets[k].bytes - UACCEL_DATA_BYTES;
        }
        CHECK_EQ(got, ranges[i].got);
        CHECK_EQ(uaccel_get32(packets[packet_count - 1].body), INPUT_BYTES);
    }
}

static void test_description(void)
{
    static char text[4096];
    uint32_t used = 0, wanted = 0;
    greet();
    ask_read(1, UACCEL_OBJECT_DESCRIPTION, 0, 0, 0, 0xFFFFFFFFu);
    for (uint32_t i = 0; i + 1 < packet_count; ++i) {
        CHECK_EQ(uaccel_get32(packets[i].body), used);
        memcpy(text + used, packets[i].body + UACCEL_DATA_BYTES, packets[i].bytes - UACCEL_DATA_BYTES);
        used += packets[i].bytes - UACCEL_DATA_BYTES;
    }
    CHECK_EQ(uaccel_get32(packets[packet_count - 1].body), used);
    for (const char *const *piece = device_description; *piece != NULL; ++piece) {
        CHECK(memcmp(text + wanted, *piece, strlen(*piece)) == 0);
        wanted += (uint32_t)strlen(*piece);
    }
    CHECK_EQ(used, wanted);
}

static void test_layers(void)
{
    greet();
    const int before = computed;
    ask_read(1, UACCEL_OBJECT_LAYERS, 2, 0, 0, 0xFFFFFFFFu);
    CHECK_EQ(packet_count, 5);
    expect_packet(0, UACCEL_TYPE_STARTED, 1);
    const uint8_t record[8] = {2, 0, 0, 0, 12, 0, 0, 0};
    CHECK(memcmp(packets[2].body + UACCEL_DATA_BYTES, record, 8) == 0);
    CHECK(memcmp(packets[3].body + UACCEL_DATA_BYTES, device_sums, 12) == 0);
    CHECK_EQ(uaccel_get32(packets[4].body), 20);
    ask_read(1, UACCEL_OBJECT_LAYERS, 2, 0, 0, 0xFFFFFFFFu);
    expect_only(UACCEL_TYPE_READ_REPLY, 1); /* again: not run again, not sent again */
    ask_read(2, UACCEL_OBJECT_LAYERS, 0xFFFF, 0, 46, 4);
    CHECK_EQ(packet_count, 5); /* the last two bytes of the mask, and the first of the next record */
    CHECK(memcmp(packets[2].body + UACCEL_DATA_BYTES, device_mask + 38, 2) == 0);
    CHECK(memcmp(packets[3].body + UACCEL_DATA_BYTES, record, 2) == 0);
    CHECK_EQ(uaccel_get32(packets[4].body), 8 + 40 + 8 + 12);
    ask_read(3, UACCEL_OBJECT_TIMES, 0xFFFF, 0, 0, 0xFFFFFFFFu);
    CHECK_EQ(packet_count, 5);
    CHECK_EQ(packets[3].bytes, UACCEL_DATA_BYTES + 18u);
    CHECK_EQ(computed - before, 3);
}

static void test_requests_that_make_no_sense(void)
{
    static const uint8_t shortest[] = {0, 0, UACCEL_WRITE_BYTES, UACCEL_RUN_OUTPUTS_AT + 1, UACCEL_READ_BYTES,
                                       UACCEL_VERBOSITY_BYTES, 0, UACCEL_WRITE_STATE_BYTES};
    const uint8_t body[32] = {0};
    uint32_t sequence = 1;
    greet();
    for (uint8_t type = UACCEL_TYPE_WRITE; type <= UACCEL_TYPE_WRITE_STATE; ++type) {
        for (uint32_t bytes = 0; bytes < shortest[type]; ++bytes) {
            ask(type, sequence, body, bytes);
            expect_error(sequence, UACCEL_ERROR_LENGTH, bytes);
            ++sequence;
        }
    }
    for (uint32_t type = 0; type < 0x80u; ++type) {
        if (type == 0 || type > UACCEL_TYPE_WRITE_STATE) {
            ask((uint8_t)type, sequence, body, 0);
            expect_error(sequence, UACCEL_ERROR_TYPE, type);
            ++sequence;
        }
    }
    ask_read(sequence, 200, 0, 0, 0, 1);
    expect_error(sequence, UACCEL_ERROR_OBJECT, 200);
    ask(UACCEL_TYPE_WRITE_STATE, sequence + 1, body, UACCEL_WRITE_STATE_BYTES + 1); /* the model has none */
    expect_error(sequence + 1, UACCEL_ERROR_RANGE, 0);
}

static void test_log(void)
{
    static char longest[2 * UACCEL_BODY_BYTES];
    memset(longest, 'x', sizeof longest - 1);
    greet();
    uaccel_log(UACCEL_LOG_INFO, "too quiet");
    uaccel_log(UACCEL_LOG_WARNING, "heard");
    uaccel_log(UACCEL_LOG_ERROR, longest);
    take_apart();
    CHECK_EQ(packet_count, 2);
    expect_packet(0, UACCEL_TYPE_LOG, 0);
    expect_packet(1, UACCEL_TYPE_LOG, 1);
    CHECK_EQ(packets[0].body[0], UACCEL_LOG_WARNING);
    CHECK(memcmp(packets[0].body + 1, "heard", 5) == 0);
    CHECK_EQ(packets[1].bytes, UACCEL_BODY_BYTES);
    const uint8_t silent = UACCEL_LOG_SILENT;
    ask(UACCEL_TYPE_VERBOSITY, 1, &silent, 1);
    uaccel_log(UACCEL_LOG_ERROR, "not heard");
    CHECK_EQ(sent.used, 0);
}

static void test_fault(void)
{
    sent.used = 0;
    uaccel_server_fault("hard fault");
    CHECK_EQ(sent.bytes[0], 0);
    take_apart();
    expect_only(UACCEL_TYPE_FAULT, 0);
    CHECK_EQ(packets[0].bytes, 10);
}

static void test_reset(void)
{
    greet();
    const int before = resets;
    ask(UACCEL_TYPE_RESET, 1, NULL, 0);
    expect_only(UACCEL_TYPE_RESET_REPLY, 1);
    CHECK_EQ(resets - before, 1);
}

static void test_the_end_of_the_line(void)
{
    closed = true;
    arrived.used = 0;
    taken = 0;
    CHECK_EQ(uaccel_server_poll(), UACCEL_PORT_CLOSED);
    sent.used = 0;
    uaccel_serve(); /* says that it starts, and returns */
    take_apart();
    expect_only(UACCEL_TYPE_BOOT, 0);
    closed = false;
}

int main(void)
{
    counts_instructions = false;
    ticks = 0x100000000u;
    test_boot();
    test_hello();
    test_hello_again_changes_nothing();
    test_hello_of_another_version_begins_nothing();
    test_tokens();
    test_its_own_words_are_overlooked();
    test_order();
    test_sequence_numbers_go_round();
    test_damage_is_told();
    test_write();
    test_a_repeated_write_is_answered_and_not_done();
    test_run();
    test_a_repeated_run_is_answered_and_not_done();
    test_run_on_other_inputs_than_were_meant();
    test_a_run_that_fails();
    test_an_accelerator_that_fails();
    test_a_drivers_codes();
    test_accounts();
    test_a_long_failure();
    test_run_and_send_the_outputs();
    test_read_outputs();
    test_ranges();
    test_description();
    test_layers();
    test_requests_that_make_no_sense();
    test_log();
    test_fault();
    test_reset();
    test_the_end_of_the_line();
    return UNIT_RESULT();
}
