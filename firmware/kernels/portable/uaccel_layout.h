/* Moving bytes, for any element type: whole tensors, boxes of them, and filling with one value.
 *
 * What a layer moves is reduced ahead of time to the fewest loops around the longest contiguous run, so that
 * few of the loops below are left for the compiler, and memcpy has a size that it knows. */
#ifndef UACCEL_LAYOUT_H
#define UACCEL_LAYOUT_H

#include "uaccel_kernel.h"

struct uaccel_copy {
    uaccel_index bytes;
};

UACCEL_KERNEL void uaccel_copy(const struct uaccel_copy *p, const void *input, void *output)
{
    memcpy(output, input, (size_t)p->bytes);
}

struct uaccel_set {
    uaccel_index bytes;
    int32_t value; /* of every byte, 0..255 */
};

UACCEL_KERNEL void uaccel_set(const struct uaccel_set *p, void *output)
{
    memset(output, (int)p->value, (size_t)p->bytes);
}

struct uaccel_fill {
    uaccel_index count;
    uaccel_index width; /* bytes of an element */
};

/* Writes the element at value count times. */
UACCEL_KERNEL void uaccel_fill(const struct uaccel_fill *p, const void *value, void *output)
{
    uint8_t *to = (uint8_t *)output;
    for (uaccel_index i = 0; i < p->count; ++i) {
        memcpy(to + i * p->width, value, (size_t)p->width);
    }
}

#define UACCEL_MOVE_LOOPS 6

struct uaccel_move {
    uaccel_index extents[UACCEL_MOVE_LOOPS]; /* outermost first, 1 for a loop that is not needed */
    uaccel_index from[UACCEL_MOVE_LOOPS];    /* bytes from one step to the next; may be 0 or negative */
    uaccel_index to[UACCEL_MOVE_LOOPS];
    uaccel_index run; /* bytes of one step, contiguous on both sides */
};

/* Copies a box of runs; source and target never overlap. */
UACCEL_KERNEL void uaccel_move(const struct uaccel_move *p, const void *source, void *target)
{
    const uint8_t *from = (const uint8_t *)source;
    uint8_t *to = (uint8_t *)target;
    const uaccel_index *f = p->from, *t = p->to;
    UACCEL_OUTER_LOOPS UACCEL_LOOP(i, 5) {
        memcpy(to + (UACCEL_OUTER_AT(t) + i * t[5]), from + (UACCEL_OUTER_AT(f) + i * f[5]), (size_t)p->run);
    }
}

#endif
