/* One factor for positive values and another for negative ones, portable C. */
#ifndef UACCEL_TWO_SLOPES_H
#define UACCEL_TWO_SLOPES_H

#include "uaccel_elementwise.h"
#include "uaccel_fixedpoint.h"

struct uaccel_two_slopes {
    uaccel_index elements;
    int32_t input_zero_point, output_zero_point;
    int32_t positive_multiplier, positive_shift;
    int32_t negative_multiplier, negative_shift; /* this multiplier may be negative */
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_two_slopes_value(const struct uaccel_two_slopes *p, int32_t stored)
{
    const int32_t value = stored - p->input_zero_point;
    const int32_t scaled = value >= 0 ? uaccel_requantise(value, p->positive_multiplier, p->positive_shift)
                                      : uaccel_requantise(value, p->negative_multiplier, p->negative_shift);
    return uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_ELEMENTWISE(uaccel_two_slopes_s8, uaccel_two_slopes, int8_t, int8_t, uaccel_two_slopes_value)
UACCEL_ELEMENTWISE(uaccel_two_slopes_s16, uaccel_two_slopes, int16_t, int16_t, uaccel_two_slopes_value)

#endif
