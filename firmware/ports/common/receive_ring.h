/* The bytes between a UART's receive interrupt and uaccel_port_read: one writer, one reader, no locks. */
#ifndef UACCEL_RECEIVE_RING_H
#define UACCEL_RECEIVE_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_port.h"

#define UACCEL_RING_MASK ((uint32_t)UACCEL_PORT_RECEIVE_BYTES - 1u)

/* The size must be a power of two. */
typedef char uaccel_ring_size_check[(UACCEL_PORT_RECEIVE_BYTES & (UACCEL_PORT_RECEIVE_BYTES - 1)) == 0 ? 1 : -1];

struct uaccel_ring {
    volatile uint32_t written; /* bytes ever put, modulo 2^32; the writer's */
    volatile uint32_t read;    /* bytes ever taken; the reader's */
    volatile uint32_t lost_at; /* `written` when bytes were lost */
    volatile bool lost;        /* set by the writer, cleared by the reader */
    volatile uint8_t bytes[UACCEL_PORT_RECEIVE_BYTES];
};

static inline bool uaccel_ring_has_room(const struct uaccel_ring *ring)
{
    return ring->written - ring->read < UACCEL_PORT_RECEIVE_BYTES;
}

static inline bool uaccel_ring_is_empty(const struct uaccel_ring *ring)
{
    return ring->written == ring->read && !ring->lost;
}

/* There must be room. */
static inline void uaccel_ring_put(struct uaccel_ring *ring, uint8_t byte)
{
    const uint32_t at = ring->written;
    ring->bytes[at & UACCEL_RING_MASK] = byte;
    ring->written = at + 1u;
}

/* Bytes were lost behind those that have been put. A second loss before the first one is told counts as one with it. */
static inline void uaccel_ring_lost(struct uaccel_ring *ring)
{
    if (!ring->lost) {
        ring->lost_at = ring->written;
        ring->lost = true;
    }
}

/* What uaccel_port_read returns. */
static inline int32_t uaccel_ring_take(struct uaccel_ring *ring, uint8_t *to, uint32_t room)
{
    const uint32_t begin = ring->read;
    uint32_t count = ring->written - begin;
    if (ring->lost) { /* looked at after `written`: what is counted may lie on both sides of the loss */
        const uint32_t before = ring->lost_at - begin;
        if (before == 0) {
            ring->lost = false;
            return UACCEL_PORT_OVERRUN;
        }
        count = count < before ? count : before;
    }
    count = count < room ? count : room;
    for (uint32_t i = 0; i < count; ++i) {
        to[i] = ring->bytes[(begin + i) & UACCEL_RING_MASK];
    }
    ring->read = begin + count;
    return (int32_t)count;
}

#endif
