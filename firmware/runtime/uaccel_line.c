#include "uaccel_line.h"

#include <string.h>

#include "uaccel_port.h"

/* How many bytes are taken from the port at a time. */
#define CHUNK_BYTES 64

static struct {
    uint32_t at; /* the next byte */
    uint32_t bytes;
    uint8_t data[CHUNK_BYTES];
} chunk;

static struct uaccel_frame_reader reader;

void uaccel_line_start(void)
{
    memset(&chunk, 0, sizeof chunk);
    memset(&reader, 0, sizeof reader);
}

int32_t uaccel_line_take(void)
{
    const int32_t got = uaccel_port_read(chunk.data, sizeof chunk.data);
    chunk.at = 0;
    chunk.bytes = got > 0 ? (uint32_t)got : 0;
    if (got == UACCEL_PORT_OVERRUN) {
        uaccel_frame_lost(&reader);
    }
    return got == UACCEL_PORT_CLOSED ? got : 0;
}

enum uaccel_frame_state uaccel_line_next(void)
{
    enum uaccel_frame_state state = UACCEL_FRAME_OPEN;
    while (state == UACCEL_FRAME_OPEN && chunk.at < chunk.bytes) {
        state = uaccel_frame_take(&reader, chunk.data[chunk.at]);
        chunk.at++;
    }
    return state;
}

const struct uaccel_frame_reader *uaccel_line_reader(void)
{
    return &reader;
}
