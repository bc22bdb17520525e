/* Softmax of 8-bit elements along the last axis, portable C.
 *
 * There are only 256 distances to the largest element of a row, so their exponentials come from a table made ahead
 * of time; every output byte is what the reference's fixed-point exponential gives. */
#ifndef UACCEL_SOFTMAX_H
#define UACCEL_SOFTMAX_H

#include "uaccel_reciprocal.h"

struct uaccel_softmax {
    uaccel_index rows, depth;
    int32_t entries; /* of the table; the exponential of a larger distance is zero */
};

/* exp(-distance), 31 bits after the point. */
UACCEL_KERNEL int32_t uaccel_softmax_exp(const struct uaccel_softmax *p, const int32_t *table, int32_t distance)
{
    return distance < p->entries ? table[distance] : 0;
}

/* The largest element of a row. */
UACCEL_KERNEL int32_t uaccel_softmax_largest(const struct uaccel_softmax *p, const int8_t *row)
{
    int32_t largest = row[0];
    for (uaccel_index i = 1; i < p->depth; ++i) {
        largest = row[i] > largest ? row[i] : largest;
    }
    return largest;
}

/* The sum of a row's exponentials, 19 bits after the point. */
UACCEL_KERNEL uint32_t uaccel_softmax_sum(const struct uaccel_softmax *p, const int8_t *row, int32_t largest,
                                          const int32_t *table)
{
    uint32_t sum = 0;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        sum += (uint32_t)uaccel_rounding_shift_right(uaccel_softmax_exp(p, table, largest - row[i]), 12);
    }
    return sum;
}

#define UACCEL_BODY "uaccel_softmax_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
