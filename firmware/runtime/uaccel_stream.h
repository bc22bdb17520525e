/* A range of an object on its way to the host, as `data` packets; the object need not exist as a whole. */
#ifndef UACCEL_STREAM_H
#define UACCEL_STREAM_H

#include <stdint.h>

struct uaccel_stream {
    uint32_t token;
    uint16_t sequence; /* of the request */
    uint32_t from;     /* the range: its first byte, */
    uint32_t to;       /* and the first after it */
    uint32_t at;       /* bytes of the object so far; in the end its size */
};

/* The object goes on with these bytes; those inside the range are sent. */
void uaccel_stream_add(struct uaccel_stream *stream, const void *data, uint32_t bytes);

#endif
