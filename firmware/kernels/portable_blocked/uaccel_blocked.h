/* What the kernels for any CPU share that compute several sums at once: each load serves more than one product.
 *
 * Of each output channel there are three constants: {sum at the start, multiplier, shift}. The shift is one less than
 * what a result is shifted by, as the rounding's half and the zero point are added before its last bit goes; in single
 * precision it is the scale's. */
#ifndef UACCEL_BLOCKED_H
#define UACCEL_BLOCKED_H

#include "uaccel_float32.h"
#include "uaccel_eight_blocked.h"

/* What the bodies compute: the elements of inputs and outputs, and how names of functions over them end. And how they
 * read weights: the elements that hold those of four channels and of eight for one input, how many elements that is, and
 * the weight of one of these channels. uaccel_int4_blocked.h and uaccel_int16_blocked.h have other ways. */
#define UACCEL_ITEM int8_t
#define UACCEL_BLOCKED(name) UACCEL_ROUNDED(name##_s8)
#define UACCEL_SUMS(name) name##_s8
#define UACCEL_FOUR int8_t
#define UACCEL_EIGHT int8_t
#define UACCEL_WEIGHTS(channels) (channels)
#define UACCEL_WEIGHT(weights, number) (weights)[number]
#define UACCEL_OF_EIGHT(number) UACCEL_WEIGHT(weights, number)

#if defined(__GNUC__) && defined(__thumb2__) && !defined(__ARM_FEATURE_DSP)
#include "uaccel_sums_thumb2.h"
#else
#include "uaccel_sums_blocked_body.h"
#endif

struct uaccel_blocked_finish {
    int32_t sign; /* 1: a negative tie is rounded down; 0: it ends below clamp_min, either way */
    int32_t clamp_min, clamp_max;
    int32_t zero_point; /* twice the zero point, and 1; in single precision the zero point */
};

/* round(2 * sum * multiplier / 2^32), halves upwards; the compiler of models has made sure that 2 * sum fits. */
UACCEL_KERNEL int32_t uaccel_blocked_high(int32_t sum, int32_t multiplier)
{
    const int64_t product = (int64_t)(sum * 2) * multiplier;
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
}

UACCEL_KERNEL int32_t uaccel_blocked_scaled(const struct uaccel_blocked_finish *p, int32_t sum, const int32_t *constants)
{
    int32_t high = uaccel_blocked_high(sum, constants[1]);
    if (p->sign) {
        high += high >> 31;
    }
    return ((high >> constants[2]) + p->zero_point) >> 1;
}

/* A value within the bounds, which are those of int8 or narrower. */
UACCEL_KERNEL int32_t uaccel_blocked_bounded(const struct uaccel_blocked_finish *p, int32_t value)
{
#ifdef __ARM_FEATURE_SAT
    value = (int32_t)__builtin_arm_ssat(value, 8);
    if (__builtin_expect(p->clamp_max - p->clamp_min == UINT8_MAX, 1)) {
        return value;
    }
#endif
    return uaccel_clamp(value, p->clamp_min, p->clamp_max);
}

UACCEL_KERNEL int32_t uaccel_blocked_value(const struct uaccel_blocked_finish *p, int32_t sum, const int32_t *constants)
{
    return uaccel_clamp(uaccel_blocked_scaled(p, sum, constants), p->clamp_min, p->clamp_max);
}

UACCEL_KERNEL int32_t uaccel_blocked_value_float32(const struct uaccel_blocked_finish *p, int32_t sum,
                                                   const int32_t *constants)
{
    const int32_t value = uaccel_requantise_float32(sum, constants[1], constants[2]) + p->zero_point;
    return uaccel_clamp(value, p->clamp_min, p->clamp_max);
}

UACCEL_KERNEL int8_t uaccel_blocked_round(const struct uaccel_blocked_finish *p, int32_t sum, const int32_t *constants)
{
    return (int8_t)uaccel_blocked_bounded(p, uaccel_blocked_scaled(p, sum, constants));
}

UACCEL_KERNEL int8_t uaccel_blocked_round_float32(const struct uaccel_blocked_finish *p, int32_t sum,
                                                  const int32_t *constants)
{
    return (int8_t)uaccel_blocked_value_float32(p, sum, constants);
}

#define UACCEL_BODY "uaccel_blocked_body.h"
#include "uaccel_roundings.h"

#endif
