#include "uaccel_frame.h"

#include <string.h>

#include "uaccel_port.h"

/* COBS (Cheshire and Baker, 1999): a code byte n stands before n - 1 bytes that are not zero. A zero follows them that
 * is not sent, unless n is 255. */
#define COBS_LONGEST 254u

uint32_t uaccel_crc32(uint32_t crc, const void *data, uint32_t bytes)
{
    /* By half-bytes: 64 bytes of table, and twice as fast as bit by bit would need. */
    static const uint32_t table[16] = {
        0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u, 0x4DB26158u, 0x5005713Cu,
        0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu, 0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};
    const uint8_t *from = data;
    crc = ~crc;
    for (uint32_t i = 0; i < bytes; ++i) {
        crc ^= from[i];
        crc = crc >> 4 ^ table[crc & 15u];
        crc = crc >> 4 ^ table[crc & 15u];
    }
    return ~crc;
}

static void push(struct uaccel_frame_reader *reader, uint8_t byte)
{
    if (reader->used < sizeof reader->packet) {
        reader->packet[reader->used] = byte;
        reader->used++;
    } else {
        reader->bad = true;
    }
}

static bool is_sound(const struct uaccel_frame_reader *reader)
{
    const uint32_t used = reader->used;
    return !reader->bad && reader->left == 0 && used >= UACCEL_PACKET_BYTES + UACCEL_CRC_BYTES &&
           uaccel_crc32(0, reader->packet, used - UACCEL_CRC_BYTES) ==
               uaccel_get32(reader->packet + used - UACCEL_CRC_BYTES);
}

static enum uaccel_frame_state finish(struct uaccel_frame_reader *reader)
{
    enum uaccel_frame_state state = UACCEL_FRAME_OPEN;
    if (reader->begun) {
        state = is_sound(reader) ? UACCEL_FRAME_WHOLE : UACCEL_FRAME_DAMAGED;
    }
    if (state == UACCEL_FRAME_WHOLE) {
        reader->used -= UACCEL_CRC_BYTES;
    }
    reader->begun = false;
    return state;
}

enum uaccel_frame_state uaccel_frame_take(struct uaccel_frame_reader *reader, uint8_t byte)
{
    if (byte == 0) {
        return finish(reader);
    }
    if (!reader->begun) {
        reader->begun = true;
        reader->bad = false;
        reader->zero_due = false;
        reader->left = 0;
        reader->used = 0;
    }
    if (reader->left > 0) {
        push(reader, byte);
        reader->left--;
        return UACCEL_FRAME_OPEN;
    }
    if (reader->zero_due) {
        push(reader, 0);
    }
    reader->left = (uint8_t)(byte - 1u);
    reader->zero_due = byte != COBS_LONGEST + 1u;
    return UACCEL_FRAME_OPEN;
}

void uaccel_frame_lost(struct uaccel_frame_reader *reader)
{
    reader->begun = true;
    reader->bad = true;
}

/* Runs of COBS: those that are complete, and from `code` on the one that grows. There is always room for it to become
 * the longest, and for the frame's end. */
static struct {
    uint32_t crc;
    uint32_t code;
    uint32_t length; /* of the run */
    uint8_t block[2u * (COBS_LONGEST + 1u)];
} writer;

static void close_run(void)
{
    writer.block[writer.code] = (uint8_t)(writer.length + 1u);
    writer.code += writer.length + 1u;
    writer.length = 0;
    if (writer.code + COBS_LONGEST + 2u > sizeof writer.block) {
        uaccel_port_write(writer.block, writer.code);
        writer.code = 0;
    }
}

static void encode(const uint8_t *from, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; ++i) {
        if (writer.length == COBS_LONGEST) {
            close_run();
        }
        if (from[i] == 0) {
            close_run();
        } else {
            writer.length++;
            writer.block[writer.code + writer.length] = from[i];
        }
    }
}

void uaccel_frame_begin(uint8_t type, uint16_t sequence, uint32_t token, bool alone)
{
    static const uint8_t zero = 0;
    uint8_t header[UACCEL_PACKET_BYTES];
    header[UACCEL_PACKET_TYPE_AT] = type;
    uaccel_put16(header + UACCEL_PACKET_SEQUENCE_AT, sequence);
    uaccel_put32(header + UACCEL_PACKET_TOKEN_AT, token);
    if (alone) {
        uaccel_port_write(&zero, 1);
    }
    writer.crc = 0;
    writer.code = 0;
    writer.length = 0;
    uaccel_frame_add(header, sizeof header);
}

void uaccel_frame_add(const void *data, uint32_t bytes)
{
    writer.crc = uaccel_crc32(writer.crc, data, bytes);
    encode(data, bytes);
}

void uaccel_frame_end(void)
{
    uint8_t crc[UACCEL_CRC_BYTES];
    uaccel_put32(crc, writer.crc);
    encode(crc, sizeof crc);
    writer.block[writer.code] = (uint8_t)(writer.length + 1u);
    writer.code += writer.length + 1u;
    writer.block[writer.code] = 0;
    uaccel_port_write(writer.block, writer.code + 1u);
}
