/* Frames: what goes in comes out, what is damaged does not, and the bytes are those of docs/protocol.md. */
#include "uaccel_frame.h"

#include <string.h>

#include "uaccel_port.h"
#include "unit.h"

static uint8_t line[8192];
static uint32_t line_bytes;

void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    memcpy(line + line_bytes, from, count);
    line_bytes += count;
}

static void send(uint8_t type, uint16_t sequence, uint32_t token, const void *body, uint32_t bytes)
{
    uaccel_frame_begin(type, sequence, token, false);
    uaccel_frame_add(body, bytes);
    uaccel_frame_end();
}

/* How many whole and damaged frames the line holds. */
static struct uaccel_frame_reader reader;
static uint32_t whole, damaged;

static void receive(const uint8_t *from, uint32_t bytes)
{
    whole = 0;
    damaged = 0;
    for (uint32_t i = 0; i < bytes; ++i) {
        const enum uaccel_frame_state state = uaccel_frame_take(&reader, from[i]);
        whole += state == UACCEL_FRAME_WHOLE;
        damaged += state == UACCEL_FRAME_DAMAGED;
    }
}

static void test_crc(void)
{
    CHECK_EQ(uaccel_crc32(0, "123456789", 9), 0xCBF43926u);
    CHECK_EQ(uaccel_crc32(0, "", 0), 0);
    CHECK_EQ(uaccel_crc32(uaccel_crc32(0, "1234", 4), "56789", 5), 0xCBF43926u);
}

static void test_integers(void)
{
    uint8_t bytes[8];
    uaccel_put64(bytes, 0x8877665544332211u);
    CHECK_EQ(uaccel_get16(bytes), 0x2211);
    CHECK_EQ(uaccel_get32(bytes + 1), 0x55443322);
    CHECK_EQ(bytes[7], 0x88);
    uaccel_put16(bytes, 0xFFFFu);
    CHECK_EQ(uaccel_get16(bytes), 0xFFFF);
}

/* The vectors of docs/protocol.md. */
static void test_vectors(void)
{
    static const uint8_t hello[] = {0x02, 0x01, 0x01, 0x06, 0x41, 0x2B, 0x87, 0x1D,
                                    0x01, 0x05, 0xD1, 0x48, 0x0C, 0xFE, 0x00};
    const uint8_t version[2] = {1, 0};
    line_bytes = 0;
    send(UACCEL_TYPE_HELLO, 0, 0x1D872B41u, version, 2);
    CHECK_EQ(line_bytes, sizeof hello);
    CHECK(memcmp(line, hello, sizeof hello) == 0);
}

static void fill(uint8_t *body, uint32_t bytes, uint32_t zeros)
{
    uint32_t state = bytes * 2654435761u + zeros;
    for (uint32_t i = 0; i < bytes; ++i) {
        state = state * 1664525u + 1013904223u;
        body[i] = (uint8_t)(zeros == 1 ? 0 : state >> 24);
        if (zeros == 0 && body[i] == 0) {
            body[i] = 1;
        }
    }
}

static void test_every_length_comes_back(void)
{
    static uint8_t body[UACCEL_BODY_BYTES];
    for (uint32_t zeros = 0; zeros < 3; ++zeros) {
        for (uint32_t bytes = 0; bytes <= UACCEL_BODY_BYTES; ++bytes) {
            fill(body, bytes, zeros);
            line_bytes = 0;
            send(0x90, (uint16_t)bytes, 0x01000200u, body, bytes);
            CHECK_EQ(memchr(line, 0, line_bytes) == line + line_bytes - 1, 1);
            CHECK(line_bytes <= bytes + UACCEL_PACKET_BYTES + UACCEL_CRC_BYTES + 2u + (bytes + 11u) / 254u);
            receive(line, line_bytes);
            CHECK_EQ(whole, 1);
            CHECK_EQ(damaged, 0);
            CHECK_EQ(reader.used, UACCEL_PACKET_BYTES + bytes);
            CHECK_EQ(reader.packet[0], 0x90);
            CHECK_EQ(uaccel_get16(reader.packet + UACCEL_PACKET_SEQUENCE_AT), bytes);
            CHECK_EQ(uaccel_get32(reader.packet + UACCEL_PACKET_TOKEN_AT), 0x01000200);
            CHECK(memcmp(reader.packet + UACCEL_PACKET_BYTES, body, bytes) == 0);
        }
    }
}

static void test_a_body_in_pieces_is_the_same_frame(void)
{
    static uint8_t body[400];
    static uint8_t whole_line[600];
    fill(body, sizeof body, 2);
    line_bytes = 0;
    send(1, 2, 3, body, sizeof body);
    memcpy(whole_line, line, line_bytes);
    const uint32_t wanted = line_bytes;
    line_bytes = 0;
    uaccel_frame_begin(1, 2, 3, false);
    for (uint32_t i = 0; i < sizeof body; ++i) {
        uaccel_frame_add(body + i, 1);
    }
    uaccel_frame_end();
    CHECK_EQ(line_bytes, wanted);
    CHECK(memcmp(line, whole_line, wanted) == 0);
}

/* Of each changed, missing or doubled byte; and the frame behind it is sound again. */
static void test_damage_is_seen(void)
{
    static uint8_t damaged_line[600];
    const uint8_t body[20] = {0, 1, 2, 0, 255};
    line_bytes = 0;
    send(0x83, 7, 0xA5A5A5A5u, body, sizeof body);
    const uint32_t first = line_bytes;
    send(0x82, 8, 0xA5A5A5A5u, body, 3);
    for (uint32_t i = 0; i + 1 < first; ++i) {
        for (uint32_t mask = 1; mask < 256; ++mask) {
            memcpy(damaged_line, line, line_bytes);
            damaged_line[i] = (uint8_t)(damaged_line[i] ^ mask);
            receive(damaged_line, line_bytes);
            CHECK_EQ(whole, 1);
            CHECK(damaged >= 1);
            CHECK_EQ(reader.packet[0], 0x82);
        }
        memcpy(damaged_line, line, i);
        memcpy(damaged_line + i, line + i + 1, line_bytes - i - 1);
        receive(damaged_line, line_bytes - 1);
        CHECK_EQ(whole, 1);
        memcpy(damaged_line, line, i + 1);
        memcpy(damaged_line + i + 1, line + i, line_bytes - i);
        receive(damaged_line, line_bytes + 1);
        CHECK_EQ(whole, 1);
    }
}

/* Its last run promises a byte more than comes, and all that came is sound. */
static void test_a_frame_that_ends_inside_of_a_run(void)
{
    line_bytes = 0;
    send(0x82, 0x0101, 0x01010101u, "xxxx", 4);
    CHECK(memchr(line, 0, line_bytes) == line + line_bytes - 1); /* one run: */
    CHECK_EQ(line[0], line_bytes - 1);
    line[0]++;
    receive(line, line_bytes);
    CHECK_EQ(whole, 0);
    CHECK_EQ(damaged, 1);
}

static void test_what_is_no_frame(void)
{
    static uint8_t noise[3 * UACCEL_PACKET_ROOM];
    receive((const uint8_t *)"\0\0\0\0", 4);
    CHECK_EQ(whole + damaged, 0);
    receive((const uint8_t *)"\1\0\1\1\0\377\0", 7);
    CHECK_EQ(whole, 0);
    CHECK_EQ(damaged, 3);
    memset(noise, 0xFF, sizeof noise); /* longer than any packet, and never a zero */
    receive(noise, sizeof noise);
    CHECK_EQ(whole + damaged, 0);
    receive((const uint8_t *)"\0", 1);
    CHECK_EQ(damaged, 1);
}

static void test_lost_bytes(void)
{
    line_bytes = 0;
    send(0x82, 1, 1, "x", 1);
    receive(line, 3);
    uaccel_frame_lost(&reader);
    receive(line + 3, line_bytes - 3);
    CHECK_EQ(whole, 0);
    CHECK_EQ(damaged, 1);
    receive(line, line_bytes);
    CHECK_EQ(whole, 1);
    uaccel_frame_lost(&reader); /* between two frames: it cannot know that the next is not part of what was lost */
    receive(line, line_bytes);
    CHECK_EQ(damaged, 1);
    receive(line, line_bytes);
    CHECK_EQ(whole, 1);
}

static void test_a_frame_that_was_given_up(void)
{
    line_bytes = 0;
    uaccel_frame_begin(0x82, 1, 1, false);
    uaccel_frame_add("begun", 5);
    uaccel_frame_begin(UACCEL_TYPE_FAULT, 0, 0, true);
    uaccel_frame_add("stopped", 7);
    uaccel_frame_end();
    receive(line, line_bytes);
    CHECK_EQ(whole, 1);
    CHECK_EQ(reader.packet[0], UACCEL_TYPE_FAULT);
    CHECK_EQ(line[0], 0);
}

int main(void)
{
    test_crc();
    test_integers();
    test_vectors();
    test_every_length_comes_back();
    test_a_body_in_pieces_is_the_same_frame();
    test_damage_is_seen();
    test_a_frame_that_ends_inside_of_a_run();
    test_what_is_no_frame();
    test_lost_bytes();
    test_a_frame_that_was_given_up();
    return UNIT_RESULT();
}
