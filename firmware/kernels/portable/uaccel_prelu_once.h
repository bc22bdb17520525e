/* PReLU with a tensor of slopes, the real result rounded once, portable C. */
#ifndef UACCEL_PRELU_ONCE_H
#define UACCEL_PRELU_ONCE_H

#include "uaccel_binary.h"
#include "uaccel_half_even.h"

struct uaccel_prelu_once {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point;
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

/* At most 47 bits. */
UACCEL_KERNEL int32_t uaccel_prelu_once_combine(const struct uaccel_prelu_once *p, int32_t x, int32_t slope)
{
    const int64_t product = (int64_t)x * (x >= 0 ? p->multiplier : slope);
    const int64_t rounded = uaccel_round_half_even(product, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 18);
}

#define UACCEL_ONCE1(p, value) ((value) - (p)->zero_point)
#define UACCEL_ONCE2(p, value) (value) /* a slope as it is */
#define UACCEL_PRELU(name, type)                                                                \
    UACCEL_BINARY_OF(name, uaccel_prelu_once, type, int32_t, type, UACCEL_ONCE1, UACCEL_ONCE2, \
                     uaccel_prelu_once_combine)
UACCEL_PRELU(uaccel_prelu_once_s8, int8_t)
UACCEL_PRELU(uaccel_prelu_once_s16, int16_t)
#undef UACCEL_PRELU

#endif
