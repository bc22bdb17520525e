/* Softmax of 8-bit elements along the last axis, the real result rounded once, portable C.
 *
 * There are only 256 distances to the largest element of a row, so their exponentials come from a table made ahead of
 * time. A row takes one division. */
#ifndef UACCEL_SOFTMAX_ONCE_H
#define UACCEL_SOFTMAX_ONCE_H

#include "uaccel_half_even.h"

struct uaccel_softmax_once {
    uaccel_index rows, depth;
    int32_t entries; /* of the table; the exponential of a larger distance is zero */
    int32_t inverse; /* 1 / output scale, 31 bits */
    int32_t shift;   /* of an exponential times a reciprocal */
    int32_t output_zero_point;
};

/* A row's largest element, its scaled reciprocal and how far down the products of that have to be shifted. */
struct uaccel_softmax_once_row {
    int32_t largest;
    int64_t reciprocal;
    int32_t shift;
};

/* exp(-distance), 30 bits after the point. */
UACCEL_KERNEL int32_t uaccel_softmax_once_exp(const struct uaccel_softmax_once *p, const int32_t *table,
                                              int32_t distance)
{
    return distance < p->entries ? table[distance] : 0;
}

UACCEL_KERNEL struct uaccel_softmax_once_row uaccel_softmax_once_row(const struct uaccel_softmax_once *p,
                                                                     const int8_t *input, const int32_t *table)
{
    struct uaccel_softmax_once_row row = {input[0], 0, p->shift};
    for (uaccel_index i = 1; i < p->depth; ++i) {
        row.largest = input[i] > row.largest ? input[i] : row.largest;
    }
    int64_t sum = 0;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        sum += uaccel_softmax_once_exp(p, table, row.largest - input[i]);
    }
    /* the largest exponential alone has 31 bits */
    for (; sum >= INT64_C(1) << 31; sum >>= 1) {
        ++row.shift;
    }
    row.reciprocal = ((int64_t)p->inverse << 31) / sum;
    return row;
}

#define UACCEL_BODY "uaccel_softmax_once_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
