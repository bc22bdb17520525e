/* The last rows that came, in a ring: a model adds one, another takes some of the newest in the order of their time. */
#ifndef RING_H
#define RING_H

#include <stdint.h>
#include <string.h>

struct ring {
    int8_t *const rows;    /* room for `capacity` of them */
    const uint32_t row;    /* bytes of one */
    const uint32_t capacity;
    uint32_t added; /* so far */
};

static inline void ring_add(struct ring *ring, const int8_t *row)
{
    memcpy(ring->rows + (ring->added % ring->capacity) * ring->row, row, ring->row);
    ring->added++;
}

/* 0: there are not that many yet. */
static inline int ring_newest(const struct ring *ring, uint32_t count, int8_t *to)
{
    if (count > ring->capacity || count > ring->added) {
        return 0;
    }
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = (ring->added - count + i) % ring->capacity;
        memcpy(to + i * ring->row, ring->rows + at * ring->row, ring->row);
    }
    return 1;
}

#endif
