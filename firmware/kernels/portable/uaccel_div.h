/* Division of quantised tensors, portable C. */
#ifndef UACCEL_DIV_H
#define UACCEL_DIV_H

#include "uaccel_binary.h"
#include "uaccel_reciprocal.h"

struct uaccel_div {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2;
    int32_t output_zero_point, multiplier, shift;
    int32_t clamp_min, clamp_max;
};

/* 1 / 0 is what Newton's steps give the reference. What takes a shift by more than 31 bits is zero. */
UACCEL_KERNEL int32_t uaccel_div_combine(const struct uaccel_div *p, int32_t x, int32_t y)
{
    const int32_t value = y < 0 ? -x : x, size = y < 0 ? -y : y;
    const int32_t zeros = uaccel_leading_zeros((uint32_t)size);
    const int32_t inverse = size != 0 ? uaccel_reciprocal((uint32_t)size << zeros) : -1515870788;
    const int32_t room = uaccel_leading_zeros((uint32_t)(value < 0 ? -value - 1 : value)) - 1;
    const int32_t quotient = uaccel_high_mul(uaccel_shift_left(value, room), inverse);
    const int32_t right = 31 - zeros + room - p->shift;
    const int32_t scaled = uaccel_high_mul(quotient, p->multiplier);
    const int32_t rounded = right > 31 ? 0 : uaccel_rounding_shift_right(scaled, right);
    return uaccel_finish(rounded, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_BINARY(uaccel_div, UACCEL_FIRST, UACCEL_SECOND, uaccel_div_combine)

#endif
