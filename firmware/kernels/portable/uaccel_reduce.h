/* Sum, mean, maximum and minimum along any axes, portable C. */
#ifndef UACCEL_REDUCE_H
#define UACCEL_REDUCE_H

#include "uaccel_float32.h"
#include "uaccel_reduction.h"

struct uaccel_reduce {
    uaccel_index outer, reduced_outer, middle, reduced_inner, inner;
    /* for sums alone: */
    int32_t offset; /* what the input's zero point adds up to, negated */
    int32_t multiplier, shift;
    int32_t output_zero_point;
};

#define UACCEL_BEGIN_FIRST(element) (element)
#define UACCEL_NEXT_MAX(most, element) ((element) > (most) ? (element) : (most))
#define UACCEL_NEXT_MIN(least, element) ((element) < (least) ? (element) : (least))
#define UACCEL_FINISH_AS_IT_IS(p, value) (value)

#define UACCEL_BODY "uaccel_reduce_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
