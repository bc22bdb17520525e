/* PRELU: the factor of negative values is a tensor of its own, int8 beside int8 and int16. Portable C. */
#ifndef UACCEL_PRELU_H
#define UACCEL_PRELU_H

#include "uaccel_binary.h"

struct uaccel_prelu {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t input_zero_point, alpha_zero_point, output_zero_point;
    int32_t positive_multiplier, positive_shift;
    int32_t negative_multiplier, negative_shift;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_prelu_combine(const struct uaccel_prelu *p, int32_t x, int32_t alpha)
{
    const int32_t scaled = x >= 0 ? uaccel_requantise(x, p->positive_multiplier, p->positive_shift)
                                  : uaccel_requantise(x * alpha, p->negative_multiplier, p->negative_shift);
    return uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
}

#define UACCEL_PRELU1(p, value) ((value) - (p)->input_zero_point)
#define UACCEL_PRELU2(p, value) ((value) - (p)->alpha_zero_point)
#define UACCEL_PRELU(name, type) \
    UACCEL_BINARY_OF(name, uaccel_prelu, type, int8_t, type, UACCEL_PRELU1, UACCEL_PRELU2, uaccel_prelu_combine)
UACCEL_PRELU(uaccel_prelu_s8, int8_t)
UACCEL_PRELU(uaccel_prelu_s16, int16_t)
#undef UACCEL_PRELU

#endif
