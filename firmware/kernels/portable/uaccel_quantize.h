/* Between single-precision floats and quantised integers, portable C; one operation an element is rounded. */
#ifndef UACCEL_QUANTIZE_H
#define UACCEL_QUANTIZE_H

#include "uaccel_elementwise.h"
#include "uaccel_fixedpoint.h"

struct uaccel_quantize {
    uaccel_index elements;
    float scale;
    int32_t zero_point;
    int32_t clamp_min, clamp_max;
};

struct uaccel_dequantize {
    uaccel_index elements;
    float scale;
    int32_t zero_point;
};

/* value / scale, clamped, so that the conversion to an integer is defined; a NaN becomes the lowest value. */
UACCEL_KERNEL float uaccel_quantize_steps(const struct uaccel_quantize *p, float value)
{
    const float low = (float)(p->clamp_min - p->zero_point), high = (float)(p->clamp_max - p->zero_point);
    const float quotient = value / p->scale;
    return quotient > low ? (quotient < high ? quotient : high) : low;
}

/* round(value / scale) + zero_point, halves to even. */
UACCEL_KERNEL int32_t uaccel_quantize_value_float32(const struct uaccel_quantize *p, float value)
{
    const float steps = uaccel_quantize_steps(p, value);
    const int32_t whole = (int32_t)steps;
    const float rest = steps - (float)whole;
    const bool odd = (whole & 1) != 0;
    const bool up = rest > 0.5f || (odd && rest >= 0.5f), down = rest < -0.5f || (odd && rest <= -0.5f);
    return whole + (up ? 1 : 0) - (down ? 1 : 0) + p->zero_point;
}

/* round(value / scale) + zero_point, halves away from zero. */
UACCEL_KERNEL int32_t uaccel_quantize_value(const struct uaccel_quantize *p, float value)
{
    const float steps = uaccel_quantize_steps(p, value);
    const int32_t whole = (int32_t)steps;
    const float rest = steps - (float)whole;
    return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0) + p->zero_point;
}

UACCEL_KERNEL float uaccel_dequantize_value(const struct uaccel_dequantize *p, int32_t stored)
{
    return (float)(stored - p->zero_point) * p->scale;
}

#define UACCEL_QUANTIZE(suffix, type)                                                                          \
    UACCEL_ELEMENTWISE(uaccel_quantize_##suffix, uaccel_quantize, float, type, uaccel_quantize_value)          \
    UACCEL_ELEMENTWISE(uaccel_quantize_##suffix##_float32, uaccel_quantize, float, type,                       \
                       uaccel_quantize_value_float32)                                                          \
    UACCEL_ELEMENTWISE(uaccel_dequantize_##suffix, uaccel_dequantize, type, float, uaccel_dequantize_value)

UACCEL_QUANTIZE(s8, int8_t)
UACCEL_QUANTIZE(u8, uint8_t)
UACCEL_QUANTIZE(s16, int16_t)

#undef UACCEL_QUANTIZE

#endif
