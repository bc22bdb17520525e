/* Multiplication of quantised tensors with broadcasting for Arm's DSP extension: int8, and int16 without zero points. */
#ifndef UACCEL_MUL_DSP_H
#define UACCEL_MUL_DSP_H

#include "uaccel_dsp.h"

struct uaccel_mul_dsp {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2;
    int32_t multiplier, offset, shift; /* as those of struct uaccel_dsp_finish */
    int32_t sign;                      /* 1: a negative tie is rounded down */
    int32_t clamp_min, clamp_max;
};

/* One product on the output's scale, within the bounds and `bits` bits. */
UACCEL_KERNEL int32_t uaccel_mul_dsp_finish(const struct uaccel_mul_dsp *p, int32_t product, bool bytes)
{
    int32_t value;
    __asm__("qadd %0, %1, %1\n\t"
            "smmulr %0, %0, %2"
            : "=&r"(value)
            : "r"(product), "r"(p->multiplier));
    if (p->sign) {
        value += value >> 31;
    }
    value = (value + p->offset) >> p->shift;
    value = bytes ? (int32_t)__builtin_arm_ssat(value, 8) : (int32_t)__builtin_arm_ssat(value, 16);
    return uaccel_dsp_bounded(value, p->clamp_min, p->clamp_max, bytes ? INT8_MIN : INT16_MIN,
                              bytes ? INT8_MAX : INT16_MAX);
}

/* One value, less its zero point, in both halves of a word. */
UACCEL_KERNEL uint32_t uaccel_mul_dsp_twice(int32_t value)
{
    return (uint32_t)(value & 0xFFFF) * 0x00010001u;
}

/* Bytes 0 and 2 of a word with `offset`, which stays, added to each; with `odd` bytes 1 and 3. */
UACCEL_KERNEL uint32_t uaccel_mul_dsp_widen(uint32_t offset, uint32_t word, bool odd)
{
    uint32_t halves;
    if (odd) {
        __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(halves) : "r"(offset), "r"(word));
    } else {
        __asm__("sxtab16 %0, %1, %2" : "=r"(halves) : "r"(offset), "r"(word));
    }
    return halves;
}

UACCEL_KERNEL int32_t uaccel_mul_dsp_low(uint32_t x, uint32_t y)
{
    return (int16_t)x * (int16_t)y;
}

UACCEL_KERNEL int32_t uaccel_mul_dsp_high(uint32_t x, uint32_t y)
{
    return ((int32_t)x >> 16) * ((int32_t)y >> 16);
}

/* Four elements, `x` and `y` of two words each: of bytes even and odd ones, of halves the first two and the others.
 * With a step of 0 an input is the same along the row, and its word has its value twice. */
UACCEL_KERNEL void uaccel_mul_dsp_load_s8(const int8_t *row, uaccel_index step, int32_t zero_point, uint32_t *words)
{
    if (step != 0) {
        const uint32_t offset = uaccel_mul_dsp_twice(-zero_point);
        const uint32_t word = uaccel_dsp_load(row);
        words[0] = uaccel_mul_dsp_widen(offset, word, false);
        words[1] = uaccel_mul_dsp_widen(offset, word, true);
    } else {
        words[0] = words[1] = uaccel_mul_dsp_twice(*row - zero_point);
    }
}

UACCEL_KERNEL void uaccel_mul_dsp_load_s16(const int16_t *row, uaccel_index step, int32_t zero_point, uint32_t *words)
{
    (void)zero_point;
    if (step != 0) {
        memcpy(&words[0], row, 4);
        memcpy(&words[1], row + 2, 4);
    } else {
        words[0] = words[1] = uaccel_mul_dsp_twice(*row);
    }
}

UACCEL_KERNEL void uaccel_mul_dsp_four_s8(const struct uaccel_mul_dsp *p, const uint32_t *x, const uint32_t *y,
                                          int8_t *output)
{
    output[0] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[0], y[0]), true);
    output[1] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[1], y[1]), true);
    output[2] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[0], y[0]), true);
    output[3] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[1], y[1]), true);
}

UACCEL_KERNEL void uaccel_mul_dsp_four_s16(const struct uaccel_mul_dsp *p, const uint32_t *x, const uint32_t *y,
                                           int16_t *output)
{
    output[0] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[0], y[0]), false);
    output[1] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[0], y[0]), false);
    output[2] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[1], y[1]), false);
    output[3] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[1], y[1]), false);
}

/* An output may be an input of its size. */
#define UACCEL_MUL_DSP(type, element, bytes)                                                        \
    UACCEL_KERNEL void uaccel_mul_dsp_##type(const struct uaccel_mul_dsp *p, const element *input1, \
                                             const element *input2, element *output)                \
    {                                                                                               \
        const uaccel_index *s1 = p->strides1, *s2 = p->strides2;                                    \
        UACCEL_OUTER_LOOPS {                                                                        \
            const element *x = input1 + UACCEL_OUTER_AT(s1);                                        \
            const element *y = input2 + UACCEL_OUTER_AT(s2);                                        \
            uaccel_index left = p->extents[5];                                                      \
            for (; left >= 4; left -= 4) {                                                          \
                uint32_t first[2], second[2];                                                       \
                uaccel_mul_dsp_load_##type(x, s1[5], p->zero_point1, first);                        \
                uaccel_mul_dsp_load_##type(y, s2[5], p->zero_point2, second);                       \
                uaccel_mul_dsp_four_##type(p, first, second, output);                               \
                x += 4 * s1[5];                                                                     \
                y += 4 * s2[5];                                                                     \
                output += 4;                                                                        \
            }                                                                                       \
            for (; left > 0; --left) {                                                              \
                const int32_t product = (*x - p->zero_point1) * (*y - p->zero_point2);              \
                *output++ = (element)uaccel_mul_dsp_finish(p, product, bytes);                      \
                x += s1[5];                                                                         \
                y += s2[5];                                                                         \
            }                                                                                       \
        }                                                                                           \
    }

UACCEL_MUL_DSP(s8, int8_t, true)
UACCEL_MUL_DSP(s16, int16_t, false)
#undef UACCEL_MUL_DSP
#endif
