/* Depthwise convolution of floats, four channels of up to two pixels at a time: NHWC.
 *
 * Weights of four channels lie side by side, tap by tap; those of channels that are left over follow one by one. */
#ifndef UACCEL_DEPTHWISE_CONV2D_FLOAT_H
#define UACCEL_DEPTHWISE_CONV2D_FLOAT_H

#include "uaccel_float.h"

struct uaccel_depthwise_conv2d_float {
    struct uaccel_geometry geo;
    uaccel_index multiplier; /* output channels of each input channel */
    int32_t adds; /* 1: another tensor, before the activation */
    struct uaccel_float_finish finish;
};

/* The taps of a window that lie inside of the input, and how far elements are from each other. */
struct uaccel_float_taps {
    uaccel_index rows, columns;
    uaccel_index row_step, column_step;   /* of the input */
    uaccel_index weight_row, weight_step; /* of the weights: what a row leaves out, and a tap */
    uaccel_index pixel;                   /* to the second window */
};

/* Four channels of a window, and of the next one where they are `two`. */
UACCEL_KERNEL void uaccel_float_channels_of(const struct uaccel_float_taps *taps, const float *restrict input,
                                            const float *restrict weights, float *restrict sums, bool two)
{
    UACCEL_FLOAT_BEGIN(0);
    UACCEL_FLOAT_BEGIN(1);
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input, *next = two ? input + taps->pixel : input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            UACCEL_FLOAT_TAP(0, tap)
            if (two) {
                UACCEL_FLOAT_TAP(1, next)
            }
            tap += taps->column_step;
            next += taps->column_step;
            weights += 4;
        }
        input += taps->row_step;
        weights += taps->weight_row;
    }
    UACCEL_FLOAT_END(0)
    if (two) {
        UACCEL_FLOAT_END(1)
    }
}

UACCEL_SHARED void uaccel_float_channels(const struct uaccel_float_taps *taps, const float *restrict input,
                                         const float *restrict weights, float *restrict sums)
{
    uaccel_float_channels_of(taps, input, weights, sums, false);
}

UACCEL_SHARED void uaccel_float_channels_twice(const struct uaccel_float_taps *taps, const float *restrict input,
                                               const float *restrict weights, float *restrict sums)
{
    uaccel_float_channels_of(taps, input, weights, sums, true);
}

UACCEL_SHARED float uaccel_float_channel(const struct uaccel_float_taps *taps, const float *restrict input,
                                         const float *restrict weights)
{
    float sum = 0;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            sum = uaccel_float_mac(sum, *tap, *weights);
            tap += taps->column_step;
            weights += 1;
        }
        input += taps->row_step;
        weights += taps->weight_row;
    }
    return sum;
}

UACCEL_KERNEL void uaccel_depthwise_float_store(const struct uaccel_depthwise_conv2d_float *p, float sum, float bias,
                                                const float *added, float *output)
{
    float value = sum + bias;
    UACCEL_FLOAT_ALONE(value);
    *output = uaccel_float_finish(&p->finish, p->adds ? value + *added : value);
}

#define UACCEL_FN(name) name##_f32
#define UACCEL_FLOAT_CHANNELS1 uaccel_float_channels
#define UACCEL_FLOAT_CHANNELS2 uaccel_float_channels_twice
#include "uaccel_depthwise_conv2d_float_body.h"

#endif
