/* Fuzzing the server. The input is a script: an operation byte, then what it takes.
 *
 *   0..2    raw bytes on the line: a length byte, and so many bytes
 *   3       a number: what so many operations after it bring is there before any of it is taken, so that packets come
 *           while a run goes on
 *   4       bytes were lost
 *   5       the board starts again
 *   6       the client says hello again, with another token
 *   7..255  a packet, sound on the line: type (operation mod 8), what to add to the right sequence (signed byte), what to
 *           add to the right token, a length byte, and so many bytes of body
 *
 * Whatever comes, every byte that the server sends belongs to a sound packet, the session's order holds, and the model
 * runs only for a request that was told that it does. Built with UACCEL_OBSERVE. */
#define QUEUE_BYTES (1u << 18)

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device_model.h"
#include "memory_port.h"
#include "uaccel_frame.h"
#include "uaccel_log.h"
#include "uaccel_server.h"

enum { MOST_RUNS = 100, MOST_BODY = 200, MOST_HELD = 8 };

static uint32_t token, sequence; /* of the next packet, if all goes well */
static uint32_t runs, started;
static uint32_t held; /* operations whose bytes are not taken before more have come */

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

void uaccel_port_reset(void)
{
    uaccel_server_start();
}

void device_computes(void)
{
    runs++;
    ticks += 3;
    uaccel_log(UACCEL_LOG_INFO, "the model runs");
    if (runs > MOST_RUNS) {
        memset(device_wave, POISON, 2); /* it may be asked for tens of thousands: it fails */
    }
}

struct script {
    const uint8_t *next;
    size_t left;
};

static uint8_t byte_of(struct script *script)
{
    if (script->left == 0) {
        return 0;
    }
    script->left--;
    return *script->next++;
}

static uint32_t bytes_of(struct script *script, const uint8_t **bytes, uint32_t most)
{
    uint32_t count = byte_of(script);
    count = count < most ? count : most;
    count = count < script->left ? count : (uint32_t)script->left;
    *bytes = script->next;
    script->next += count;
    script->left -= count;
    return count;
}

/* A run whose CRC of the inputs is 0 gets the right one: no fuzzer guesses it. */
static void help_run(uint8_t *body, uint32_t bytes)
{
    if (bytes >= UACCEL_RUN_BYTES && uaccel_get32(body + UACCEL_RUN_INPUT_CRC_AT) == 0) {
        const uint32_t crc = uaccel_crc32(0, device_wave, sizeof device_wave);
        uaccel_put32(body + UACCEL_RUN_INPUT_CRC_AT, uaccel_crc32(crc, device_weights, sizeof device_weights));
    }
}

static void put_packet(uint8_t type, uint32_t number, uint32_t session, const uint8_t *from, uint32_t bytes)
{
    uint8_t body[MOST_BODY];
    memcpy(body, from, bytes);
    if (type == UACCEL_TYPE_RUN) {
        help_run(body, bytes);
    }
    port_writes_to = &arrived;
    uaccel_frame_begin(type, (uint16_t)number, session, false);
    uaccel_frame_add(body, bytes);
    uaccel_frame_end();
    port_writes_to = &sent;
}

static void check_packet(const uint8_t *packet, uint32_t used)
{
    const uint8_t type = packet[UACCEL_PACKET_TYPE_AT];
    must(type >= UACCEL_FROM_DEVICE);
    must(used <= UACCEL_PACKET_BYTES + UACCEL_BODY_BYTES);
    started += type == UACCEL_TYPE_STARTED;
    if (type == UACCEL_TYPE_EXPECT) {
        must(uaccel_get32(packet + UACCEL_PACKET_TOKEN_AT) != 0);
    }
}

static void check_sent(void)
{
    static struct uaccel_frame_reader reader;
    must(sent.used < QUEUE_BYTES);
    started = 0;
    for (uint32_t i = 0; i < sent.used; ++i) {
        const enum uaccel_frame_state state = uaccel_frame_take(&reader, sent.bytes[i]);
        must(state != UACCEL_FRAME_DAMAGED);
        if (state == UACCEL_FRAME_WHOLE) {
            check_packet(reader.packet, reader.used);
        }
    }
    must(!reader.begun);
    sent.used = 0;
}

static void step(struct script *script)
{
    const uint8_t operation = byte_of(script);
    const uint8_t *bytes = NULL;
    if (held > 0) {
        held--;
    } else {
        arrived.used = 0;
        taken = 0;
    }
    runs = 0;
    if (operation == 3) {
        held = byte_of(script) % MOST_HELD;
    } else if (operation < 4) {
        const uint32_t count = bytes_of(script, &bytes, 255);
        memcpy(arrived.bytes + arrived.used, bytes, count);
        arrived.used += count;
    } else if (operation == 4) {
        overrun = true;
    } else if (operation == 5) {
        uaccel_server_start();
    } else if (operation == 6) {
        const uint8_t version[2] = {UACCEL_PROTOCOL_VERSION, 0};
        token += 1u + byte_of(script);
        sequence = 0;
        put_packet(UACCEL_TYPE_HELLO, 0, token, version, sizeof version);
        sequence = 1;
    } else {
        const uint32_t off = (byte_of(script) ^ 0x80u) - 0x80u; /* as a signed byte says */
        const uint8_t other = byte_of(script);
        const uint32_t count = bytes_of(script, &bytes, MOST_BODY);
        put_packet(operation % 8u, sequence + off, token + other, bytes, count);
        sequence += off == 0 && other == 0;
    }
    while (held == 0 && (overrun || taken < arrived.used)) {
        must(uaccel_server_poll() == 0);
    }
    check_sent();
    must(runs == 0 || started >= 2);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct script script = {data, size};
    const uint8_t version[2] = {UACCEL_PROTOCOL_VERSION, 0};
    uaccel_server_start();
    token = 0x10000u;
    sequence = 1;
    held = 0;
    arrived.used = 0;
    taken = 0;
    put_packet(UACCEL_TYPE_HELLO, 0, token, version, sizeof version);
    must(uaccel_server_poll() == 0);
    check_sent();
    while (script.left > 0) {
        step(&script);
    }
    return 0;
}
