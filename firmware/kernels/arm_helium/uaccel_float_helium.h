/* Sums of products of floats with Arm Helium, four output channels a vector: the same bits as uaccel_float.h gives.
 *
 * Helium takes numbers below 2^-126 for zero, and the FPU notes that it did. Such sums are computed again, without it.
 * The notes are cleared. */
#ifndef UACCEL_FLOAT_HELIUM_H
#define UACCEL_FLOAT_HELIUM_H

#include "uaccel_float.h"

#if !defined(__ARM_FEATURE_MVE) || !(__ARM_FEATURE_MVE & 2)
#error "made for Helium for floats: name the CPU to the compiler (-mcpu=cortex-m55), or compile for another --board"
#endif
#include <arm_mve.h>

#define UACCEL_FLOAT_SUBNORMAL 0x88u /* FPSCR: a result or an operand was too small to be normal */

/* Whether a sum that these vectors went into met such a number. */
UACCEL_KERNEL bool uaccel_float_is_flushed(float32x4_t first, float32x4_t second, float32x4_t third, float32x4_t last)
{
    uint32_t flags;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(flags) : "w"(first), "w"(second), "w"(third), "w"(last));
    if ((flags & UACCEL_FLOAT_SUBNORMAL) == 0) {
        return false;
    }
    __asm__ volatile("vmsr fpscr, %0" : : "r"(flags & ~UACCEL_FLOAT_SUBNORMAL));
    return true;
}

UACCEL_KERNEL float32x4_t uaccel_float_macs(float32x4_t sums, float32x4_t weights, float value)
{
    float32x4_t products = vmulq_n_f32(weights, value);
    __asm__("" : "+w"(products)); /* each is rounded before it is added */
    return vaddq_f32(sums, products);
}

UACCEL_KERNEL float32x4_t uaccel_float_macs_apart(float32x4_t sums, float32x4_t weights, float32x4_t values)
{
    float32x4_t products = vmulq_f32(weights, values);
    __asm__("" : "+w"(products));
    return vaddq_f32(sums, products);
}

#define UACCEL_FN(name) name##_helium
#define UACCEL_FLOAT_ALONE_FN(name) name
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_FOUR(weights) vld1q_f32(weights)
#include "uaccel_float_rows_helium_body.h"

/* Convolution of floats with Arm Helium. */

#define UACCEL_FN(name) name##_helium
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_SUMS1 uaccel_float_row_helium
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows_helium
#include "uaccel_conv2d_float_body.h"

/* Depthwise convolution of floats with Arm Helium. */

/* Four channels of a window, and of the next one where they are `two`. */
UACCEL_KERNEL void uaccel_float_channels_helium_of(const struct uaccel_float_taps *taps, const float *restrict input,
                                                   const float *restrict weights, float *restrict sums, bool two)
{
    const float *row = input, *weight = weights;
    float32x4_t sum0 = vdupq_n_f32(0), sum1 = sum0;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = row;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            const float32x4_t four = vld1q_f32(weight);
            sum0 = uaccel_float_macs_apart(sum0, four, vld1q_f32(tap));
            if (two) {
                sum1 = uaccel_float_macs_apart(sum1, four, vld1q_f32(tap + taps->pixel));
            }
            tap += taps->column_step;
            weight += 4;
        }
        row += taps->row_step;
        weight += taps->weight_row;
    }
    vst1q_f32(sums, sum0);
    if (two) {
        vst1q_f32(sums + 4, sum1);
    }
    if (uaccel_float_is_flushed(sum0, two ? sum1 : sum0, sum0, two ? sum1 : sum0)) {
        (two ? uaccel_float_channels_twice : uaccel_float_channels)(taps, input, weights, sums);
    }
}

UACCEL_SHARED void uaccel_float_channels_helium(const struct uaccel_float_taps *taps, const float *restrict input,
                                                const float *restrict weights, float *restrict sums)
{
    uaccel_float_channels_helium_of(taps, input, weights, sums, false);
}

UACCEL_SHARED void uaccel_float_channels_twice_helium(const struct uaccel_float_taps *taps,
                                                      const float *restrict input, const float *restrict weights,
                                                      float *restrict sums)
{
    uaccel_float_channels_helium_of(taps, input, weights, sums, true);
}

#define UACCEL_FN(name) name##_helium
#define UACCEL_FLOAT_CHANNELS1 uaccel_float_channels_helium
#define UACCEL_FLOAT_CHANNELS2 uaccel_float_channels_twice_helium
#include "uaccel_depthwise_conv2d_float_body.h"

#endif
