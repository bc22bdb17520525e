/* Multiplication of quantised tensors, portable C. */
#ifndef UACCEL_MUL_H
#define UACCEL_MUL_H

#include "uaccel_binary.h"

struct uaccel_mul {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2, output_zero_point;
    int32_t multiplier, shift;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_mul_combine(const struct uaccel_mul *p, int32_t x, int32_t y)
{
    const int32_t product = uaccel_requantise(x * y, p->multiplier, p->shift);
    return uaccel_finish(product, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_BINARY(uaccel_mul, UACCEL_FIRST, UACCEL_SECOND, uaccel_mul_combine)

#endif
