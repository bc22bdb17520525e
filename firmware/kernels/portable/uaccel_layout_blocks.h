/* Picks entries of a table that lies as a matrix product reads it: the elements of some entries side by side. */
#ifndef UACCEL_LAYOUT_BLOCKS_H
#define UACCEL_LAYOUT_BLOCKS_H

#include "uaccel_float_f16.h"
#include "uaccel_layout.h"

struct uaccel_gather_blocks {
    uaccel_index entries;
    uaccel_index count; /* indices */
    uaccel_index depth; /* elements of an entry */
    uaccel_index width; /* bytes of an element as it lies in the table */
    uaccel_index block; /* entries side by side */
};

/* The first element of the entry that an index means, or else the nearest one. */
UACCEL_KERNEL const uint8_t *uaccel_entry_in_block(const struct uaccel_gather_blocks *p, const void *table,
                                                   int64_t index)
{
    const uaccel_index entry = uaccel_nearest_slice(index, p->entries - 1);
    const uaccel_index before = entry / p->block * p->block * p->depth + entry % p->block;
    return (const uint8_t *)table + before * p->width;
}

/* Copies the elements of an entry. */
UACCEL_KERNEL void uaccel_copy_entry(const struct uaccel_gather_blocks *p, const uint8_t *from, uint8_t *to)
{
    for (uaccel_index k = 0; k < p->depth; ++k) {
        memcpy(to + k * p->width, from + k * p->block * p->width, (size_t)p->width);
    }
}

/* Widens the elements of an entry, which are halves of floats. */
UACCEL_KERNEL void uaccel_widen_entry(const struct uaccel_gather_blocks *p, const uint8_t *from, float *to)
{
    for (uaccel_index k = 0; k < p->depth; ++k) {
        uint16_t halves[2] = {0, 0};
        float zero;
        memcpy(halves, from + k * p->block * 2, 2);
        uaccel_float_of_halves(halves, to + k, &zero);
    }
}

#define UACCEL_INDEX int32_t
#define UACCEL_FN(name) name##_s32
#include "uaccel_layout_blocks_body.h"

#define UACCEL_INDEX int64_t
#define UACCEL_FN(name) name##_s64
#include "uaccel_layout_blocks_body.h"

#endif
