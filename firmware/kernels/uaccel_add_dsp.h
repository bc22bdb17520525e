/* Addition and subtraction of int8 tensors of one shape for Arm's DSP extension. */
#ifndef UACCEL_ADD_DSP_H
#define UACCEL_ADD_DSP_H

#include "uaccel_dsp.h"

/* One input on the common scale: ((value << shift) + offset) * multiplier / 2^32, rounded, and then halves of
 * 2^exponent away from zero; with a multiplier of 0 it is what stands in the brackets. All of it comes doubled. */
struct uaccel_add_dsp_side {
    int32_t shift, offset, multiplier, exponent;
};

struct uaccel_add_dsp {
    uaccel_index elements;
    struct uaccel_add_dsp_side first, second;
    int32_t multiplier, offset, shift; /* of the sum, as those of struct uaccel_dsp_finish */
    int32_t clamp_min, clamp_max;
    int32_t subtract; /* 1: first - second */
};

UACCEL_KERNEL int32_t uaccel_dsp_high(int32_t a, int32_t b)
{
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
}

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

UACCEL_KERNEL int32_t uaccel_add_dsp_one(const struct uaccel_add_dsp *p, int32_t value1, int32_t value2)
{
    const int32_t first = uaccel_add_dsp_raise(&p->first, value1);
    const int32_t second = uaccel_add_dsp_raise(&p->second, value2);
    const int32_t high = uaccel_dsp_high(p->subtract ? first - second : first + second, p->multiplier);
    const int32_t value = (high + (high >> 31) + p->offset) >> p->shift;
    int32_t scaled = (int32_t)__builtin_arm_ssat(value, 8); /* __ssat() itself gives warnings */
    if (p->clamp_min > INT8_MIN) {
        scaled = scaled < p->clamp_min ? p->clamp_min : scaled;
    }
    if (p->clamp_max < INT8_MAX) {
        scaled = scaled > p->clamp_max ? p->clamp_max : scaled;
    }
    return scaled;
}

/* The output may be either input. */
UACCEL_KERNEL void uaccel_add_dsp_s8(const struct uaccel_add_dsp *p, const int8_t *input1, const int8_t *input2,
                                     int8_t *output)
{
    uaccel_index i = 0;
    for (; i + 4 <= p->elements; i += 4) {
        uint32_t first, second;
        memcpy(&first, input1 + i, 4);
        memcpy(&second, input2 + i, 4);
        output[i] = (int8_t)uaccel_add_dsp_one(p, (int8_t)first, (int8_t)second);
        output[i + 1] = (int8_t)uaccel_add_dsp_one(p, (int8_t)(first >> 8), (int8_t)(second >> 8));
        output[i + 2] = (int8_t)uaccel_add_dsp_one(p, (int8_t)(first >> 16), (int8_t)(second >> 16));
        output[i + 3] = (int8_t)uaccel_add_dsp_one(p, (int8_t)(first >> 24), (int8_t)(second >> 24));
    }
    for (; i < p->elements; ++i) {
        output[i] = (int8_t)uaccel_add_dsp_one(p, input1[i], input2[i]);
    }
}

#endif
