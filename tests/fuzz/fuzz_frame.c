/* Fuzzing the frames: any bytes as a line, and any bytes as the body of a packet. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "uaccel_frame.h"
#include "uaccel_port.h"

static uint8_t line[4 * UACCEL_PACKET_ROOM];
static uint32_t line_bytes;

void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    memcpy(line + line_bytes, from, count);
    line_bytes += count;
}

static void must(int holds)
{
    if (!holds) {
        abort();
    }
}

static void as_a_line(const uint8_t *data, size_t size)
{
    struct uaccel_frame_reader reader;
    memset(&reader, 0, sizeof reader);
    for (size_t i = 0; i < size; ++i) {
        if (uaccel_frame_take(&reader, data[i]) == UACCEL_FRAME_WHOLE) {
            must(reader.used >= UACCEL_PACKET_BYTES);
            must(reader.used + UACCEL_CRC_BYTES <= sizeof reader.packet);
            must(uaccel_crc32(0, reader.packet, reader.used) == uaccel_get32(reader.packet + reader.used));
        }
        must(reader.used <= sizeof reader.packet);
    }
}

static void as_a_body(const uint8_t *data, size_t size)
{
    struct uaccel_frame_reader reader;
    uint32_t whole = 0;
    const uint32_t bytes = size < UACCEL_BODY_BYTES ? (uint32_t)size : UACCEL_BODY_BYTES;
    const uint32_t half = bytes / 2;
    memset(&reader, 0, sizeof reader);
    line_bytes = 0;
    uaccel_frame_begin(7, 0x1234, 0, true);
    uaccel_frame_add(data, half);
    uaccel_frame_add(data + half, bytes - half);
    uaccel_frame_end();
    for (uint32_t i = 0; i < line_bytes; ++i) {
        must((line[i] == 0) == (i == 0 || i + 1 == line_bytes));
        whole += uaccel_frame_take(&reader, line[i]) == UACCEL_FRAME_WHOLE;
    }
    must(whole == 1);
    must(reader.used == UACCEL_PACKET_BYTES + bytes);
    must(bytes == 0 || memcmp(reader.packet + UACCEL_PACKET_BYTES, data, bytes) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    as_a_line(data, size);
    as_a_body(data, size);
    return 0;
}
