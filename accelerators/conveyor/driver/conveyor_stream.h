/* What the driver knows of streams: enough to tell a good one from a damaged one, and what memory it needs. */
#ifndef CONVEYOR_STREAM_H
#define CONVEYOR_STREAM_H

#include <stdbool.h>
#include <stdint.h>

enum conveyor_kind { CONVEYOR_CONSTANTS, CONVEYOR_INPUT, CONVEYOR_OUTPUT, CONVEYOR_SCRATCH, CONVEYOR_KINDS };

struct conveyor_stream {
    const uint8_t *bytes;
    uint32_t size;
    uint32_t places;
    uint32_t commands;
    uint32_t cycles; /* that it will take */
};

struct conveyor_memory {
    enum conveyor_kind kind;
    uint32_t bytes;
};

/* NULL when the stream is as it was packed, else what is wrong with it. Reads no byte beyond `size`. */
const char *conveyor_stream_open(struct conveyor_stream *stream, const uint8_t *bytes, uint32_t size);

/* What place `number` is; below `places` of a stream that was opened. */
struct conveyor_memory conveyor_stream_place(const struct conveyor_stream *stream, uint32_t number);

static inline bool conveyor_is_written(enum conveyor_kind kind)
{
    return kind == CONVEYOR_OUTPUT || kind == CONVEYOR_SCRATCH;
}

#endif
