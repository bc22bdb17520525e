/* Multiplication of quantised tensors, the real result rounded once, portable C. */
#ifndef UACCEL_PRODUCT_H
#define UACCEL_PRODUCT_H

#include "uaccel_binary.h"
#include "uaccel_half_even.h"

struct uaccel_product {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2;
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

/* Whether a product fits 32 bits: with zero points of bytes even that of int16 elements does. */
UACCEL_KERNEL bool uaccel_product_is_short(const struct uaccel_product *p)
{
    return p->zero_point1 >= -128 && p->zero_point1 <= 127 && p->zero_point2 >= -128 && p->zero_point2 <= 127;
}

/* At most 33 bits, and 63 with the multiplier, which has 30. */
UACCEL_KERNEL int32_t uaccel_product_combine(const struct uaccel_product *p, int32_t x, int32_t y)
{
    const int64_t product = uaccel_product_is_short(p) ? x * y : (int64_t)x * y;
    const int64_t rounded = uaccel_round_half_even(product * p->multiplier, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 32);
}

UACCEL_BINARY(uaccel_product, UACCEL_FIRST, UACCEL_SECOND, uaccel_product_combine)

#endif
