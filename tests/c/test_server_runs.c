/* The session server while a run goes on: what ends it, and what comes meanwhile. */
#include "server_host.h"

static void put_hello(uint32_t token)
{
    const uint8_t version[2] = {UACCEL_PROTOCOL_VERSION, 0};
    put(UACCEL_TYPE_HELLO, 0, token, version, sizeof version);
}

static void another_host_greets(void)
{
    put_hello(TOKEN + 1);
    put(UACCEL_TYPE_VERBOSITY, 1, TOKEN + 1, "\2", 1);
}

static void an_echo(void)
{
    put(UACCEL_TYPE_STARTED, 1, TOKEN, NULL, 0);
}

static void the_host_resets(void)
{
    put(UACCEL_TYPE_RESET, 9, TOKEN, NULL, 0); /* what lies between is of no matter to it */
}

static void the_line_ends(void)
{
    closed = true;
}

static void others_ask(void)
{
    const uint8_t write[UACCEL_WRITE_BYTES + 1] = {0, 0, 0, 0, 99};
    put(UACCEL_TYPE_WRITE, 2, TOKEN, write, sizeof write);
    put(UACCEL_TYPE_VERBOSITY, 1, TOKEN + 7, "\2", 1);
    put_hello(TOKEN);
}

static void noise(void)
{
    arrived.bytes[arrived.used++] = 5;
    arrived.bytes[arrived.used++] = 0;
}

static void put_run(uint32_t sequence, uint32_t count)
{
    uint8_t body[UACCEL_RUN_BYTES] = {1};
    uaccel_put32(body + UACCEL_RUN_COUNT_AT, count);
    uaccel_put32(body + UACCEL_RUN_INPUT_CRC_AT, input_crc());
    put(UACCEL_TYPE_RUN, sequence, TOKEN, body, sizeof body);
}

static void run_with(void (*what)(void), uint32_t count)
{
    greet();
    event = what;
    event_at = computed + 3;
    ask_run(1, 5, count, false);
    event = NULL;
}

static void test_another_host_ends_a_long_run(void)
{
    const int before = computed;
    run_with(another_host_greets, UACCEL_MOST_RUNS);
    CHECK_EQ(computed - before, 3);
    CHECK_EQ(packet_count, 4);
    expect_packet(2, UACCEL_TYPE_HELLO_REPLY, 0);
    CHECK_EQ(packets[2].token, TOKEN + 1);
    expect_packet(3, UACCEL_TYPE_VERBOSITY_REPLY, 1);
}

/* Also where it comes right behind the request, in what was taken from the port with that. */
static void test_another_host_that_comes_at_once(void)
{
    greet();
    const int before = computed;
    put_run(1, UACCEL_MOST_RUNS);
    another_host_greets();
    serve();
    CHECK_EQ(computed - before, 1);
    expect_packet(2, UACCEL_TYPE_HELLO_REPLY, 0);
}

static void test_a_reset_ends_a_long_run(void)
{
    const int before = computed, resets_before = resets;
    reset_restarts = true;
    run_with(the_host_resets, UACCEL_MOST_RUNS);
    reset_restarts = false;
    CHECK_EQ(computed - before, 3);
    CHECK_EQ(resets - resets_before, 1);
    CHECK_EQ(packet_count, 4);
    expect_packet(2, UACCEL_TYPE_RESET_REPLY, 9);
    expect_packet(3, UACCEL_TYPE_BOOT, 0);
}

static void test_the_end_of_the_line_ends_a_long_run(void)
{
    const int before = computed;
    greet();
    event = the_line_ends;
    event_at = computed + 3;
    put_run(1, UACCEL_MOST_RUNS);
    while (uaccel_server_poll() == 0) {
    }
    arrived.used = 0;
    taken = 0;
    take_apart();
    event = NULL;
    closed = false;
    CHECK_EQ(computed - before, 3);
    CHECK_EQ(packet_count, 2); /* no answer: it could not be sent */
}

/* They are asked for again when the run has been answered; who has no part in the session is told at once. */
static void test_what_comes_during_a_run_is_passed_over(void)
{
    const int before = computed;
    run_with(others_ask, 5);
    CHECK_EQ(computed - before, 5);
    CHECK_EQ(packet_count, 6);
    expect_packet(2, UACCEL_TYPE_ERROR, 1);
    CHECK_EQ(packets[2].body[UACCEL_ERROR_CODE_AT], UACCEL_ERROR_STALE);
    expect_packet(3, UACCEL_TYPE_HELLO_REPLY, 0);
    expect_packet(4, UACCEL_TYPE_RUN_REPLY, 1);
    expect_packet(5, UACCEL_TYPE_EXPECT, 2);
    CHECK(device_wave[0] != 99);
    ask_write(2, 0, "\1", 1);
    expect_only(UACCEL_TYPE_WRITE_REPLY, 2);
    ask_run(3, 6, 5, false);
    CHECK_EQ(packet_count, 3); /* told once */
    run_with(noise, 5);
    expect_packet(packet_count - 1, UACCEL_TYPE_EXPECT, 2);
    run_with(an_echo, 5);
    expect_packet(packet_count - 1, UACCEL_TYPE_RUN_REPLY, 1);
}

static void flood(void)
{
    for (int i = 0; i < 100; ++i) {
        noise();
    }
    event_at++;
}

/* A line that never falls silent keeps neither the run from going on nor the server from looking. */
static void test_a_flood_during_a_run(void)
{
    const int before = computed;
    run_with(flood, 1000);
    CHECK_EQ(computed - before, 1000);
    expect_packet(2, UACCEL_TYPE_RUN_REPLY, 1);
}

static void test_more_runs_than_one_request_may_ask_for(void)
{
    const int before = computed;
    greet();
    ask_run(1, 5, UACCEL_MOST_RUNS + 1, false);
    expect_packet(2, UACCEL_TYPE_ERROR, 1);
    CHECK_EQ(packets[2].body[UACCEL_ERROR_CODE_AT], UACCEL_ERROR_COUNT);
    CHECK_EQ(uaccel_get32(packets[2].body + UACCEL_ERROR_DETAIL_AT), UACCEL_MOST_RUNS);
    ask_run(2, 5, 0xFFFFFFFFu, false);
    expect_packet(2, UACCEL_TYPE_ERROR, 2);
    CHECK_EQ(computed - before, 0);
    ask_run(3, 5, UACCEL_MOST_RUNS, false);
    expect_packet(2, UACCEL_TYPE_RUN_REPLY, 3);
    CHECK_EQ(computed - before, UACCEL_MOST_RUNS);
}

int main(void)
{
    counts_instructions = false;
    ticks = 0x100000000u;
    test_another_host_ends_a_long_run();
    test_another_host_that_comes_at_once();
    test_a_reset_ends_a_long_run();
    test_the_end_of_the_line_ends_a_long_run();
    test_what_comes_during_a_run_is_passed_over();
    test_a_flood_during_a_run();
    test_more_runs_than_one_request_may_ask_for();
    return UNIT_RESULT();
}
