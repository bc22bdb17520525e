/* Addition and subtraction of int8 tensors with broadcasting for Arm's DSP extension. */
#ifndef UACCEL_ADD_DSP_H
#define UACCEL_ADD_DSP_H

#include "uaccel_dsp.h"

/* One input on the common scale: ((value << shift) + offset) * multiplier / 2^32, rounded, and then halves of
 * 2^exponent away from zero; with a multiplier of 0 it is what stands in the brackets. All of it comes doubled. */
struct uaccel_add_dsp_side {
    int32_t shift, offset, multiplier, exponent;
};

struct uaccel_add_dsp {
    uaccel_index extents[6], strides1[6], strides2[6]; /* as those of uaccel_binary.h */
    struct uaccel_add_dsp_side first, second;
    int32_t multiplier, offset, shift; /* of the sum, as those of struct uaccel_dsp_finish */
    int32_t clamp_min, clamp_max;
    int32_t subtract; /* 1: first - second */
};

/* Twice the value on the common scale. */
UACCEL_KERNEL int32_t uaccel_add_dsp_raise(const struct uaccel_add_dsp_side *p, int32_t value)
{
    const int32_t raised = (int32_t)((uint32_t)value << p->shift) + p->offset;
    if (p->multiplier == 0) {
        return raised;
    }
    const int32_t high = uaccel_dsp_high(raised, p->multiplier);
    if (p->exponent == 0) {
        return high * 2;
    }
    return ((high + (high >> 31) + (1 << p->exponent >> 1)) >> p->exponent) * 2;
}

/* The result of both, which are on the common scale. */
UACCEL_KERNEL int32_t uaccel_add_dsp_one(const struct uaccel_add_dsp *p, int32_t first, int32_t second)
{
    const int32_t high = uaccel_dsp_high(p->subtract ? first - second : first + second, p->multiplier);
    const int32_t value = (high + (high >> 31) + p->offset) >> p->shift;
    const int32_t scaled = (int32_t)__builtin_arm_ssat(value, 8); /* __ssat() itself gives warnings */
    return uaccel_dsp_bounded(scaled, p->clamp_min, p->clamp_max, INT8_MIN, INT8_MAX);
}

/* An input's value on the common scale, of a byte in a word; `once` where the row repeats one value. */
UACCEL_KERNEL int32_t uaccel_add_dsp_byte(const struct uaccel_add_dsp_side *p, bool repeats, int32_t once, uint32_t word,
                                          int32_t shift)
{
    return repeats ? once : uaccel_add_dsp_raise(p, (int8_t)(word >> shift));
}

/* Four elements, or one. */
UACCEL_KERNEL void uaccel_add_dsp_some(const struct uaccel_add_dsp *p, const int8_t *input1, int32_t once1,
                                       const int8_t *input2, int32_t once2, bool four, int8_t *output)
{
    const bool repeats1 = p->strides1[5] == 0, repeats2 = p->strides2[5] == 0;
    uint32_t first = 0, second = 0;
    if (!repeats1) {
        memcpy(&first, input1, four ? 4 : 1);
    }
    if (!repeats2) {
        memcpy(&second, input2, four ? 4 : 1);
    }
#define UACCEL_ADD_DSP_BYTE(number)                                              \
    output[number] = (int8_t)uaccel_add_dsp_one(                                 \
        p, uaccel_add_dsp_byte(&p->first, repeats1, once1, first, 8 * (number)), \
        uaccel_add_dsp_byte(&p->second, repeats2, once2, second, 8 * (number)))
    UACCEL_ADD_DSP_BYTE(0);
    if (four) {
        UACCEL_ADD_DSP_BYTE(1);
        UACCEL_ADD_DSP_BYTE(2);
        UACCEL_ADD_DSP_BYTE(3);
    }
#undef UACCEL_ADD_DSP_BYTE
}

/* The output may be an input of its size. */
UACCEL_KERNEL void uaccel_add_dsp_s8(const struct uaccel_add_dsp *p, const int8_t *input1, const int8_t *input2,
                                     int8_t *output)
{
    const uaccel_index *s1 = p->strides1, *s2 = p->strides2;
    UACCEL_OUTER_LOOPS {
        const int8_t *x = input1 + UACCEL_OUTER_AT(s1);
        const int8_t *y = input2 + UACCEL_OUTER_AT(s2);
        const int32_t once1 = uaccel_add_dsp_raise(&p->first, *x), once2 = uaccel_add_dsp_raise(&p->second, *y);
        uaccel_index left = p->extents[5];
        for (; left >= 4; left -= 4) {
            uaccel_add_dsp_some(p, x, once1, y, once2, true, output);
            x += 4 * s1[5];
            y += 4 * s2[5];
            output += 4;
        }
        for (; left > 0; --left) {
            uaccel_add_dsp_some(p, x, once1, y, once2, false, output++);
            x += s1[5];
            y += s2[5];
        }
    }
}

#endif
