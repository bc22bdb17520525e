/* Softmax along the last axis, the real result rounded once, portable C.
 *
 * Of 8 bits there are only 256 distances to the largest element of a row, so their exponentials come from a table made
 * ahead of time; of 16 bits from two. A row takes one division. */
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

/* The same for distances of 16 bits: the exponential of 256 times the upper half, and that of the lower half. */
UACCEL_KERNEL int32_t uaccel_softmax_once_exp16(const struct uaccel_softmax_once *p, const int32_t *table,
                                                int32_t distance)
{
    const int64_t product = (int64_t)table[distance >> 8] * table[p->entries / 2 + (distance & 255)];
    return (int32_t)((product + (INT64_C(1) << 29)) >> 30);
}

#define UACCEL_GIVEN int8_t
#define UACCEL_GIVEN_FN(name) UACCEL_FN(name##_s8)
#define UACCEL_GIVEN_EXP uaccel_softmax_once_exp
#define UACCEL_BODY "uaccel_softmax_once_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"
#undef UACCEL_GIVEN
#undef UACCEL_GIVEN_FN
#undef UACCEL_GIVEN_EXP

#define UACCEL_GIVEN int16_t
#define UACCEL_GIVEN_FN(name) UACCEL_FN(name##_s16)
#define UACCEL_GIVEN_EXP uaccel_softmax_once_exp16
#define UACCEL_BODY "uaccel_softmax_once_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"
#undef UACCEL_GIVEN
#undef UACCEL_GIVEN_FN
#undef UACCEL_GIVEN_EXP

#endif
