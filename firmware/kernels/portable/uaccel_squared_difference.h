/* The squared difference of quantised tensors, portable C. */
#ifndef UACCEL_SQUARED_DIFFERENCE_H
#define UACCEL_SQUARED_DIFFERENCE_H

#include "uaccel_binary.h"

struct uaccel_squared_difference {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t left_shift; /* extra bits of the common scale */
    int32_t zero_point1, multiplier1, shift1;
    int32_t zero_point2, multiplier2, shift2;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_squared_difference_combine(const struct uaccel_squared_difference *p, int32_t x,
                                                        int32_t y)
{
    const int32_t square = (int32_t)((uint32_t)(x - y) * (uint32_t)(x - y));
    const int32_t scaled = uaccel_requantise(square, p->output_multiplier, p->output_shift);
    return uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_BINARY(uaccel_squared_difference, UACCEL_RAISED1, UACCEL_RAISED2, uaccel_squared_difference_combine)

#endif
