/* Moving bytes, for any element type: whole tensors, boxes of them, filling with one value, and picking slices.
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

/* Picking slices of a tensor by indices that are known at run time alone, or that follow no pattern.
 *
 * What lies outside the tensor is replaced by the nearest slice: no input makes a kernel read elsewhere. */

struct uaccel_gather {
    uaccel_index outer;   /* elements in front of the axis that the indices count */
    uaccel_index entries; /* extent of that axis */
    uaccel_index count;   /* indices */
    uaccel_index bytes;   /* of everything behind that axis */
};

UACCEL_KERNEL uaccel_index uaccel_nearest_slice(int64_t index, uaccel_index last)
{
    return index < 0 ? 0 : (index > last ? last : (uaccel_index)index);
}

#define UACCEL_INDEX int32_t
#define UACCEL_FN(name) name##_s32
#include "uaccel_layout_gather_body.h"

#define UACCEL_INDEX int64_t
#define UACCEL_FN(name) name##_s64
#include "uaccel_layout_gather_body.h"

#define UACCEL_GATHER_AXES 5

struct uaccel_gather_nd {
    uaccel_index count; /* index vectors */
    uaccel_index axes;  /* entries of one vector */
    uaccel_index last;  /* number of the last slice */
    uaccel_index bytes; /* of one slice */
    uaccel_index strides[UACCEL_GATHER_AXES]; /* slices from one value of an entry to the next */
};

/* As in the reference, the slice that the whole vector means must exist, not each entry be in range. Entries count as
 * 2^31 at most, so that no sum of their products overflows. */
UACCEL_KERNEL void uaccel_gather_nd(const struct uaccel_gather_nd *p, const void *data, const int64_t *indices,
                                    void *output)
{
    const uint8_t *from = (const uint8_t *)data;
    uint8_t *to = (uint8_t *)output;
    for (uaccel_index i = 0; i < p->count; ++i) {
        int64_t number = 0;
        for (uaccel_index k = 0; k < p->axes; ++k) {
            const int64_t most = (int64_t)1 << 31;
            const int64_t entry = indices[k] < -most ? -most : (indices[k] > most ? most : indices[k]);
            number += entry * (int64_t)p->strides[k];
        }
        memcpy(to, from + uaccel_nearest_slice(number, p->last) * p->bytes, (size_t)p->bytes);
        indices += p->axes;
        to += p->bytes;
    }
}

#endif
