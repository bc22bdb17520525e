/* Matrix products of int16, four columns of the right side at a time: what families share. */
#ifndef UACCEL_BATCH_MATMUL16_H
#define UACCEL_BATCH_MATMUL16_H

#include "uaccel_batch_matmul.h"

struct uaccel_batch_matmul16 {
    struct uaccel_batch_matmul layer;
    uaccel_index filled;    /* elements of a row of the left side, filled up */
    uaccel_index lhs_count; /* elements of all of the left side */
    uaccel_index packed;    /* elements of four packed columns */
};

/* Elements of `count` columns, by `unit` of each of four; what is not there is zero. */
UACCEL_KERNEL void uaccel_batch_matmul16_spread(const struct uaccel_batch_matmul16 *p, const int16_t *columns,
                                                uaccel_index count, uaccel_index unit, int16_t *packed)
{
    if (count < 4 || p->filled != p->layer.depth) {
        memset(packed, 0, (size_t)p->packed * sizeof *packed);
    }
    for (uaccel_index c = 0; c < count; ++c) {
        const int16_t *from = columns + c * p->layer.rhs_column_step;
        int16_t *to = packed + c * unit;
        for (uaccel_index k = 0; k < p->layer.depth; ++k) {
            to[(k / unit) * 4 * unit + k % unit] = *from;
            from += p->layer.rhs_depth_step;
        }
    }
}

/* A row of the left side with what may be read behind it; `copy` where it does not lie so. */
UACCEL_KERNEL const int16_t *uaccel_batch_matmul16_row(const struct uaccel_batch_matmul16 *p, const int16_t *row,
                                                       const int16_t *end, int16_t *copy)
{
    if (p->layer.lhs_depth_step == 1 && end - row >= p->filled) {
        return row;
    }
    for (uaccel_index k = 0; k < p->layer.depth; ++k) {
        copy[k] = row[k * p->layer.lhs_depth_step];
    }
    return copy;
}

#endif
