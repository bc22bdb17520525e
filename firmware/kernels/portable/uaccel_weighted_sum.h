/* Addition and subtraction of quantised tensors, the real result rounded once, portable C. */
#ifndef UACCEL_WEIGHTED_SUM_H
#define UACCEL_WEIGHTED_SUM_H

#include "uaccel_binary.h"
#include "uaccel_half_even.h"

struct uaccel_weighted_sum {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, multiplier1;
    int32_t zero_point2, multiplier2; /* negative for a difference */
    int32_t shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_weighted_sum_combine(const struct uaccel_weighted_sum *p, int32_t x, int32_t y)
{
    const int64_t sum = (int64_t)x * p->multiplier1 + (int64_t)y * p->multiplier2; /* below 2^48 */
    const int64_t rounded = uaccel_round_half_even(sum, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 18);
}

UACCEL_BINARY(uaccel_weighted_sum, UACCEL_FIRST, UACCEL_SECOND, uaccel_weighted_sum_combine)

#endif
