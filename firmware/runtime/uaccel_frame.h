/* Frames of the session protocol (docs/protocol.md): packets with a CRC-32, made free of zeros by COBS, a zero behind
 * each. Nothing here knows what a packet means. */
#ifndef UACCEL_FRAME_H
#define UACCEL_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_protocol.h"

/* The longest body of a packet that the device takes or sends, in bytes: the size of its receive buffer. More carries
 * more payload in a frame (512: 95 % of the line), less saves RAM. 96 to 65000. */
#ifndef UACCEL_BODY_BYTES
#define UACCEL_BODY_BYTES 512
#endif

#define UACCEL_CRC_BYTES 4u
#define UACCEL_PACKET_ROOM (UACCEL_PACKET_BYTES + UACCEL_BODY_BYTES + UACCEL_CRC_BYTES)

/* CRC-32 as in Ethernet, zip and zlib. Start with 0; the result of one call goes on in the next. */
uint32_t uaccel_crc32(uint32_t crc, const void *data, uint32_t bytes);

/* Little endian, at any address. */
static inline uint16_t uaccel_get16(const uint8_t *from)
{
    return (uint16_t)(from[0] | (uint32_t)from[1] << 8);
}

static inline uint32_t uaccel_get32(const uint8_t *from)
{
    return uaccel_get16(from) | (uint32_t)uaccel_get16(from + 2) << 16;
}

static inline void uaccel_put16(uint8_t *to, uint32_t value)
{
    to[0] = (uint8_t)(value & 0xFFu);
    to[1] = (uint8_t)(value >> 8 & 0xFFu);
}

static inline void uaccel_put32(uint8_t *to, uint32_t value)
{
    uaccel_put16(to, value);
    uaccel_put16(to + 2, value >> 16);
}

static inline void uaccel_put64(uint8_t *to, uint64_t value)
{
    uaccel_put32(to, (uint32_t)(value & 0xFFFFFFFFu));
    uaccel_put32(to + 4, (uint32_t)(value >> 32));
}

/* Takes a line apart, byte by byte. All zero is the state at the beginning of a frame. */
struct uaccel_frame_reader {
    uint32_t used;   /* bytes in `packet` */
    uint8_t left;    /* until the next code of COBS */
    bool zero_due;   /* a zero comes before the next code, if there is one */
    bool begun;      /* the frame has at least one byte */
    bool bad;        /* it is too long for a packet, or incomplete: nothing but its end counts */
    uint8_t packet[UACCEL_PACKET_ROOM];
};

enum uaccel_frame_state {
    UACCEL_FRAME_OPEN,    /* the frame goes on */
    UACCEL_FRAME_WHOLE,   /* `packet` holds a packet, sound to the last bit, its CRC cut off; `used` is its size */
    UACCEL_FRAME_DAMAGED  /* something has ended that is no sound frame */
};

/* The next byte of the line. What `packet` holds is intact until the call after. */
enum uaccel_frame_state uaccel_frame_take(struct uaccel_frame_reader *reader, uint8_t byte);

/* Bytes were lost here: what has begun can only be damaged. */
void uaccel_frame_lost(struct uaccel_frame_reader *reader);

/* Sends a packet in pieces, over uaccel_port_write: begin, add..., end. One packet at a time; to begin another one gives
 * up the one before, which the other end sees as damaged. `alone` sends a zero first, which ends whatever noise or
 * cut-off frame may stand on the line. */
void uaccel_frame_begin(uint8_t type, uint16_t sequence, uint32_t token, bool alone);
void uaccel_frame_add(const void *data, uint32_t bytes);
void uaccel_frame_end(void);

#endif
