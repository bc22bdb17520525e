#include "uaccel_stream.h"

#include "uaccel_frame.h"

#define PIECE_BYTES (UACCEL_BODY_BYTES - UACCEL_DATA_BYTES)

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void send_piece(const struct uaccel_stream *stream, uint32_t offset, const uint8_t *data, uint32_t bytes)
{
    uint8_t head[UACCEL_DATA_BYTES];
    uaccel_put32(head + UACCEL_DATA_OFFSET_AT, offset);
    uaccel_frame_begin(UACCEL_TYPE_DATA, stream->sequence, stream->token, false);
    uaccel_frame_add(head, sizeof head);
    uaccel_frame_add(data, bytes);
    uaccel_frame_end();
}

void uaccel_stream_add(struct uaccel_stream *stream, const void *data, uint32_t bytes)
{
    const uint8_t *const start = data;
    const uint32_t begin = stream->at;
    const uint32_t end = smaller(begin + bytes, stream->to);
    uint32_t next = begin > stream->from ? begin : stream->from;
    while (next < end) {
        const uint32_t piece = smaller(end - next, PIECE_BYTES);
        send_piece(stream, next, start + (next - begin), piece);
        next += piece;
    }
    stream->at += bytes;
}
