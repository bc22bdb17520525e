#include "conveyor_stream.h"

#include <stddef.h>

#include "conveyor.h"

#define MAGIC 0x59564E43u /* "CNVY" */
#define FORMAT 1u
#define MOST_COMMANDS 65535u

enum { HEADER_BYTES = 24, PLACE_BYTES = 8, COMMAND_BYTES = 128, CHECKSUM_BYTES = 4 };
enum { MAGIC_AT = 0, FORMAT_AT = 4, SIZE_AT = 8, PLACES_AT = 12, COMMANDS_AT = 16, CYCLES_AT = 20 };

static uint32_t word(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* CRC-32 as in Ethernet and zip, four bits at a time: a table of 64 bytes. */
static uint32_t checksum(const uint8_t *bytes, uint32_t size)
{
    static const uint32_t table[16] = {0x00000000u, 0x1DB71064u, 0x3B6E20C8u, 0x26D930ACu, 0x76DC4190u, 0x6B6B51F4u,
                                       0x4DB26158u, 0x5005713Cu, 0xEDB88320u, 0xF00F9344u, 0xD6D6A3E8u, 0xCB61B38Cu,
                                       0x9B64C2B0u, 0x86D3D2D4u, 0xA00AE278u, 0xBDBDF21Cu};
    uint32_t crc = 0xFFFFFFFFu;
    for (uint32_t i = 0; i < size; ++i) {
        crc ^= bytes[i];
        crc = crc >> 4 ^ table[crc & 15u];
        crc = crc >> 4 ^ table[crc & 15u];
    }
    return ~crc;
}

static uint32_t size_of(const struct conveyor_stream *stream)
{
    return HEADER_BYTES + PLACE_BYTES * stream->places + COMMAND_BYTES * stream->commands + CHECKSUM_BYTES;
}

const char *conveyor_stream_open(struct conveyor_stream *stream, const uint8_t *bytes, uint32_t size)
{
    if (size < HEADER_BYTES + CHECKSUM_BYTES) {
        return "the command stream is truncated";
    }
    if (word(bytes + MAGIC_AT) != MAGIC) {
        return "there is no command stream";
    }
    if (word(bytes + FORMAT_AT) != FORMAT) {
        return "the command stream is of another format";
    }
    stream->bytes = bytes;
    stream->size = size;
    stream->places = word(bytes + PLACES_AT);
    stream->commands = word(bytes + COMMANDS_AT);
    stream->cycles = word(bytes + CYCLES_AT);
    if (stream->places > CONVEYOR_PLACES || stream->commands > MOST_COMMANDS) {
        return "the command stream is damaged";
    }
    if (word(bytes + SIZE_AT) != size || size_of(stream) != size) {
        return "the command stream is truncated";
    }
    if (checksum(bytes, size - CHECKSUM_BYTES) != word(bytes + size - CHECKSUM_BYTES)) {
        return "the command stream is damaged";
    }
    for (uint32_t i = 0; i < stream->places; ++i) {
        if (conveyor_stream_place(stream, i).kind >= CONVEYOR_KINDS) {
            return "the command stream is damaged";
        }
    }
    return NULL;
}

struct conveyor_memory conveyor_stream_place(const struct conveyor_stream *stream, uint32_t number)
{
    const uint8_t *const at = stream->bytes + HEADER_BYTES + PLACE_BYTES * number;
    const uint32_t kind = word(at);
    const struct conveyor_memory memory = {kind < CONVEYOR_KINDS ? (enum conveyor_kind)kind : CONVEYOR_KINDS,
                                           word(at + 4)};
    return memory;
}
