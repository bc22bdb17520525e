/* From one integer quantisation to another, with a clamp, portable C. */
#ifndef UACCEL_REQUANTIZE_H
#define UACCEL_REQUANTIZE_H

#include "uaccel_fixedpoint.h"

struct uaccel_requantize {
    uaccel_index elements;
    int32_t input_zero_point, output_zero_point;
    int32_t multiplier, shift;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_requantize_value(const struct uaccel_requantize *p, int32_t stored)
{
    const int32_t value = uaccel_add_wrapping(stored, -p->input_zero_point);
    /* a factor of one leaves 31 bits as they are */
    const bool same_scale = p->multiplier == 1 << 30 && p->shift == 1;
    const int32_t scaled = same_scale ? uaccel_shift_left(value, 1) >> 1
                                      : uaccel_requantise(value, p->multiplier, p->shift);
    return uaccel_clamp(uaccel_add_wrapping(scaled, p->output_zero_point), p->clamp_min, p->clamp_max);
}

#define UACCEL_REQUANTIZE(from, from_type, to, to_type)                                                 \
    UACCEL_KERNEL void uaccel_requantize_##from##_##to(const struct uaccel_requantize *p,               \
                                                       const from_type *input, to_type *output)         \
    {                                                                                                   \
        for (uaccel_index i = 0; i < p->elements; ++i) {                                                \
            output[i] = (to_type)uaccel_requantize_value(p, input[i]);                                  \
        }                                                                                               \
    }

#define UACCEL_REQUANTIZE_FROM(from, from_type)         \
    UACCEL_REQUANTIZE(from, from_type, s8, int8_t)      \
    UACCEL_REQUANTIZE(from, from_type, u8, uint8_t)     \
    UACCEL_REQUANTIZE(from, from_type, s16, int16_t)    \
    UACCEL_REQUANTIZE(from, from_type, s32, int32_t)

UACCEL_REQUANTIZE_FROM(s8, int8_t)
UACCEL_REQUANTIZE_FROM(u8, uint8_t)
UACCEL_REQUANTIZE_FROM(s16, int16_t)
UACCEL_REQUANTIZE_FROM(s32, int32_t)

#undef UACCEL_REQUANTIZE
#undef UACCEL_REQUANTIZE_FROM

#endif
