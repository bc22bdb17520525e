/* Sums and means along any axes, the real result rounded once, portable C. */
#ifndef UACCEL_SCALED_SUM_H
#define UACCEL_SCALED_SUM_H

#include "uaccel_half_even.h"
#include "uaccel_reduction.h"

struct uaccel_scaled_sum {
    uaccel_index outer, reduced_outer, middle, reduced_inner, inner;
    int32_t offset; /* what the input's zero point adds up to, negated */
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_scaled_sum_finish(const struct uaccel_scaled_sum *p, int32_t sum)
{
    const int64_t scaled = (int64_t)(sum + p->offset) * p->multiplier;
    const int64_t rounded = uaccel_round_half_even(scaled, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 32);
}

#define UACCEL_SCALED_SUM(name, element) \
    UACCEL_REDUCTION(name, uaccel_scaled_sum, element, UACCEL_BEGIN_SUM, UACCEL_NEXT_SUM, uaccel_scaled_sum_finish)
UACCEL_SCALED_SUM(uaccel_scaled_sum_s8, int8_t)
UACCEL_SCALED_SUM(uaccel_scaled_sum_s16, int16_t)
#undef UACCEL_SCALED_SUM

#endif
