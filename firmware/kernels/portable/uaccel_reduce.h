/* Sum, mean, maximum and minimum along any axes, portable C.
 *
 * Neighbouring axes are joined ahead of time: every reduction is over the second and fourth of five extents. */
#ifndef UACCEL_REDUCE_H
#define UACCEL_REDUCE_H

#include "uaccel_fixedpoint.h"
#include "uaccel_float32.h"

struct uaccel_reduce {
    uaccel_index outer, reduced_outer, middle, reduced_inner, inner;
    /* for sums alone: */
    int32_t offset; /* what the input's zero point adds up to, negated */
    int32_t multiplier, shift;
    int32_t output_zero_point;
};

enum uaccel_reduction { UACCEL_REDUCE_SUM, UACCEL_REDUCE_SUM_FLOAT32, UACCEL_REDUCE_MAX, UACCEL_REDUCE_MIN };

#define UACCEL_BODY "uaccel_reduce_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
