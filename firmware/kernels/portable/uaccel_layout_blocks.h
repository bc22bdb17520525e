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

/* The same of bytes between other numbers, as Arm's products read them: eight entries, then what else a kernel wants. */
struct uaccel_gather_stream {
    uaccel_index entries;
    uaccel_index count;  /* indices */
    uaccel_index depth;  /* elements of an entry */
    uaccel_index first;  /* bytes before the first eight entries */
    uaccel_index stride; /* bytes from eight entries to the next eight */
};

/* Two entries in 16 bits, 256 times the even one and the odd one; of each four elements, 0 and 2 share a word. */
UACCEL_KERNEL void uaccel_copy_of_pairs(const struct uaccel_gather_stream *p, const uint8_t *stream, uaccel_index entry,
                                        int8_t *to)
{
    const uint8_t *const from = stream + p->first + entry / 8 * p->stride + entry % 8 / 2 * 4;
    for (uaccel_index k = 0; k < p->depth; ++k) {
        int16_t both;
        memcpy(&both, from + k / 4 * 32 + k % 2 * 16 + k % 4 / 2 * 2, sizeof both);
        const int32_t odd = ((both & 0xFF) ^ 0x80) - 0x80;
        to[k] = (int8_t)(entry % 2 != 0 ? odd : (both - odd) / 256);
    }
}

/* Vectors of 16 elements, of one entry after the other, the even ones first. */
UACCEL_KERNEL void uaccel_copy_of_vectors(const struct uaccel_gather_stream *p, const uint8_t *stream,
                                          uaccel_index entry, int8_t *to)
{
    const uint8_t *const from = stream + p->first + entry / 8 * p->stride + (entry % 2 * 4 + entry % 8 / 2) * 16;
    for (uaccel_index k = 0; k < p->depth; k += 16) {
        const uaccel_index rest = p->depth - k;
        memcpy(to + k, from + k * 8, (size_t)(rest < 16 ? rest : 16));
    }
}

#define UACCEL_INDEX int32_t
#define UACCEL_FN(name) name##_s32
#include "uaccel_layout_blocks_body.h"

#define UACCEL_INDEX int64_t
#define UACCEL_FN(name) name##_s64
#include "uaccel_layout_blocks_body.h"

#endif
