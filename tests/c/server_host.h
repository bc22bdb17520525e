/* The host of the session server's tests: sends packets, and takes apart what comes back. A program of tests includes it
 * once. */
#ifndef UACCEL_TESTS_SERVER_HOST_H
#define UACCEL_TESTS_SERVER_HOST_H

#define UACCEL_OBSERVE
#include "uaccel_server.h"

#include <string.h>

#include "device_model.h"
#include "memory_port.h"
#include "uaccel_account.h"
#include "uaccel_frame.h"
#include "unit.h"

#define TOKEN 0x1D872B41u

enum { MOST_PACKETS = 64, INPUT_BYTES = WAVE + 2 * SUMS, OUTPUT_BYTES = MASK + 4 * SUMS };

static int resets, computed;
static bool reset_restarts;

/* What happens on the line while the inference of that number goes on. */
static int event_at;
static void (*event)(void);

void uaccel_port_reset(void)
{
    resets++;
    if (reset_restarts) {
        uaccel_server_start();
    }
}

void device_computes(void)
{
    computed++;
    ticks += 10;
    if (event != NULL && computed == event_at) {
        event();
    }
}

struct packet {
    uint32_t bytes; /* of the body */
    uint32_t token;
    uint16_t sequence;
    uint8_t type;
    uint8_t body[UACCEL_BODY_BYTES];
};

static struct packet packets[MOST_PACKETS];
static uint32_t packet_count;

static inline void put(uint8_t type, uint32_t sequence, uint32_t token, const void *body, uint32_t bytes)
{
    port_writes_to = &arrived;
    uaccel_frame_begin(type, (uint16_t)sequence, token, false);
    uaccel_frame_add(body, bytes);
    uaccel_frame_end();
    port_writes_to = &sent;
}

static inline void take_apart(void)
{
    static struct uaccel_frame_reader reader;
    packet_count = 0;
    for (uint32_t i = 0; i < sent.used; ++i) {
        const enum uaccel_frame_state state = uaccel_frame_take(&reader, sent.bytes[i]);
        CHECK(state != UACCEL_FRAME_DAMAGED);
        if (state != UACCEL_FRAME_WHOLE || packet_count == MOST_PACKETS) {
            continue;
        }
        struct packet *const packet = &packets[packet_count++];
        packet->type = reader.packet[UACCEL_PACKET_TYPE_AT];
        packet->sequence = uaccel_get16(reader.packet + UACCEL_PACKET_SEQUENCE_AT);
        packet->token = uaccel_get32(reader.packet + UACCEL_PACKET_TOKEN_AT);
        packet->bytes = reader.used - UACCEL_PACKET_BYTES;
        memcpy(packet->body, reader.packet + UACCEL_PACKET_BYTES, packet->bytes);
    }
    sent.used = 0;
}

static inline void serve(void)
{
    while (overrun || taken < arrived.used) {
        CHECK_EQ(uaccel_server_poll(), 0);
    }
    arrived.used = 0;
    taken = 0;
    take_apart();
}

static inline void ask(uint8_t type, uint32_t sequence, const void *body, uint32_t bytes)
{
    put(type, sequence, TOKEN, body, bytes);
    serve();
}

static inline void expect_packet(uint32_t number, uint8_t type, uint32_t sequence)
{
    CHECK(number < packet_count);
    CHECK_EQ(packets[number].type, type);
    CHECK_EQ(packets[number].sequence, sequence);
}

static inline void expect_only(uint8_t type, uint32_t sequence)
{
    CHECK_EQ(packet_count, 1);
    expect_packet(0, type, sequence);
}

static inline void expect_error(uint32_t sequence, uint8_t code, uint32_t detail)
{
    expect_only(UACCEL_TYPE_ERROR, sequence);
    CHECK_EQ(packets[0].body[UACCEL_ERROR_CODE_AT], code);
    CHECK_EQ(uaccel_get32(packets[0].body + UACCEL_ERROR_DETAIL_AT), detail);
}

static inline void greet(void)
{
    const uint8_t version[2] = {UACCEL_PROTOCOL_VERSION, 0};
    uaccel_server_start();
    sent.used = 0;
    ask(UACCEL_TYPE_HELLO, 0, version, sizeof version);
    expect_only(UACCEL_TYPE_HELLO_REPLY, 0);
}

static inline void ask_write(uint32_t sequence, uint32_t offset, const void *data, uint32_t bytes)
{
    uint8_t body[UACCEL_WRITE_BYTES + INPUT_BYTES + 1];
    uaccel_put32(body + UACCEL_WRITE_OFFSET_AT, offset);
    memcpy(body + UACCEL_WRITE_BYTES, data, bytes);
    ask(UACCEL_TYPE_WRITE, sequence, body, UACCEL_WRITE_BYTES + bytes);
}

static inline uint32_t input_crc(void)
{
    return uaccel_crc32(uaccel_crc32(0, device_wave, sizeof device_wave), device_weights, sizeof device_weights);
}

static inline void ask_run(uint32_t sequence, uint32_t run, uint32_t count, bool outputs)
{
    uint8_t body[UACCEL_RUN_BYTES] = {0};
    body[UACCEL_RUN_OUTPUTS_AT] = outputs;
    uaccel_put32(body + UACCEL_RUN_RUN_AT, run);
    uaccel_put32(body + UACCEL_RUN_COUNT_AT, count);
    uaccel_put32(body + UACCEL_RUN_INPUT_CRC_AT, input_crc());
    ask(UACCEL_TYPE_RUN, sequence, body, sizeof body);
}

static inline void ask_read(uint32_t sequence, uint8_t object, uint32_t index, uint32_t run, uint32_t offset, uint32_t length)
{
    uint8_t body[UACCEL_READ_BYTES];
    body[UACCEL_READ_OBJECT_AT] = object;
    uaccel_put16(body + UACCEL_READ_INDEX_AT, index);
    uaccel_put32(body + UACCEL_READ_RUN_AT, run);
    uaccel_put32(body + UACCEL_READ_OFFSET_AT, offset);
    uaccel_put32(body + UACCEL_READ_LENGTH_AT, length);
    ask(UACCEL_TYPE_READ, sequence, body, sizeof body);
}

#endif
