/* Depthwise convolution of floats with Arm Helium. */
#ifndef UACCEL_DEPTHWISE_CONV2D_FLOAT_HELIUM_H
#define UACCEL_DEPTHWISE_CONV2D_FLOAT_HELIUM_H

#include "uaccel_depthwise_conv2d_float.h"
#include "uaccel_float_helium.h"

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
