/* Addition and subtraction of quantised tensors, portable C. */
#ifndef UACCEL_ADD_H
#define UACCEL_ADD_H

#include "uaccel_binary.h"

struct uaccel_add {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t left_shift; /* extra bits of the common scale */
    int32_t zero_point1, multiplier1, shift1;
    int32_t zero_point2, multiplier2, shift2;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
    int32_t sign; /* 1: input1 + input2, -1: input1 - input2 */
};

/* One input on the common scale. That of the coarser input is twice its own, so its multiplier is one half. */
UACCEL_KERNEL int32_t uaccel_add_rescale(int32_t value, int32_t left_shift, int32_t multiplier, int32_t shift)
{
    if (multiplier == INT32_C(1) << 30 && shift == 0) {
        return uaccel_shift_left(value, left_shift - 1);
    }
    return uaccel_raised(value, left_shift, multiplier, shift);
}

UACCEL_KERNEL int32_t uaccel_add_combine(const struct uaccel_add *p, int32_t x, int32_t y)
{
    const int32_t sum = uaccel_requantise(uaccel_add_wrapping(x, y), p->output_multiplier, p->output_shift);
    return uaccel_finish(sum, p->output_zero_point, p->clamp_min, p->clamp_max);
}

#define UACCEL_ADD1(p, value) \
    uaccel_add_rescale(UACCEL_FIRST(p, value), (p)->left_shift, (p)->multiplier1, (p)->shift1)
#define UACCEL_ADD2(p, value) \
    ((p)->sign * uaccel_add_rescale(UACCEL_SECOND(p, value), (p)->left_shift, (p)->multiplier2, (p)->shift2))
UACCEL_BINARY(uaccel_add, UACCEL_ADD1, UACCEL_ADD2, uaccel_add_combine)

#endif
