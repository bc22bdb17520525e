/* Sums and means along any axes, the real result rounded once, portable C.
 *
 * Neighbouring axes are joined ahead of time: every reduction is over the second and fourth of five extents. */
#ifndef UACCEL_SCALED_SUM_H
#define UACCEL_SCALED_SUM_H

#include "uaccel_half_even.h"

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

#define UACCEL_BODY "uaccel_scaled_sum_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
