/* From one integer quantisation to another, with a clamp, portable C. */
#ifndef UACCEL_REQUANTIZE_H
#define UACCEL_REQUANTIZE_H

#include "uaccel_elementwise.h"
#include "uaccel_float32.h"

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
    const bool same_scale = p->multiplier == INT32_C(1) << 30 && p->shift == 1;
    const int32_t scaled = same_scale ? uaccel_shift_left(value, 1) >> 1
                                      : uaccel_requantise(value, p->multiplier, p->shift);
    return uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
}

/* The same for results of up to 16 bits, rounded as single precision rounds. */
UACCEL_KERNEL int32_t uaccel_requantize_value_float32(const struct uaccel_requantize *p, int32_t stored)
{
    const int32_t value = uaccel_add_wrapping(stored, -p->input_zero_point);
    /* a factor of one leaves the values of 16 bits as they are */
    const bool same_scale = p->multiplier == INT32_C(1) << 30 && p->shift == 1;
    const int32_t scaled = same_scale ? uaccel_clamp(value, UACCEL_FLOAT32_LOWEST, UACCEL_FLOAT32_HIGHEST)
                                      : uaccel_requantise_float32(value, p->multiplier, p->shift);
    return uaccel_clamp(scaled + p->output_zero_point, p->clamp_min, p->clamp_max);
}

#define UACCEL_REQUANTIZE(name, from_type, to_type, value) \
    UACCEL_ELEMENTWISE(name, uaccel_requantize, from_type, to_type, value)

#define UACCEL_REQUANTIZE_FROM(from, type)                                                                         \
    UACCEL_REQUANTIZE(uaccel_requantize_##from##_s8, type, int8_t, uaccel_requantize_value)                        \
    UACCEL_REQUANTIZE(uaccel_requantize_##from##_u8, type, uint8_t, uaccel_requantize_value)                       \
    UACCEL_REQUANTIZE(uaccel_requantize_##from##_s16, type, int16_t, uaccel_requantize_value)                      \
    UACCEL_REQUANTIZE(uaccel_requantize_##from##_s32, type, int32_t, uaccel_requantize_value)                      \
    UACCEL_REQUANTIZE(uaccel_requantize_##from##_s8_float32, type, int8_t, uaccel_requantize_value_float32)        \
    UACCEL_REQUANTIZE(uaccel_requantize_##from##_u8_float32, type, uint8_t, uaccel_requantize_value_float32)       \
    UACCEL_REQUANTIZE(uaccel_requantize_##from##_s16_float32, type, int16_t, uaccel_requantize_value_float32)

UACCEL_REQUANTIZE_FROM(s8, int8_t)
UACCEL_REQUANTIZE_FROM(u8, uint8_t)
UACCEL_REQUANTIZE_FROM(s16, int16_t)
UACCEL_REQUANTIZE_FROM(s32, int32_t)
UACCEL_REQUANTIZE(uaccel_requantize_u16_s16, uint16_t, int16_t, uaccel_requantize_value)
UACCEL_REQUANTIZE(uaccel_requantize_s16_u16, int16_t, uint16_t, uaccel_requantize_value)

#undef UACCEL_REQUANTIZE
#undef UACCEL_REQUANTIZE_FROM

#endif
