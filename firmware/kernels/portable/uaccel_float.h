/* What the kernels for floats share: sums of products, and what is done with a sum.
 *
 * A sum begins with zero and takes its products one by one, in the order of the weights. Each product is rounded before
 * it is added: with that every CPU and compiler gives the same bits. */
#ifndef UACCEL_FLOAT_H
#define UACCEL_FLOAT_H

#include "uaccel_kernel.h"

/* Compilers like to round a product and an addition once, where the CPU can. */
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
#elif defined(__GNUC__) && defined(__FP_FAST_FMAF)
#if defined(__arm__)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+t"(product))
#elif defined(__aarch64__)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+w"(product))
#elif defined(__riscv)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+f"(product))
#elif defined(__SSE__)
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+x"(product))
#else
#define UACCEL_FLOAT_ROUNDED(product) __asm__("" : "+m"(product))
#endif
#endif
#ifndef UACCEL_FLOAT_ROUNDED
#define UACCEL_FLOAT_ROUNDED(product)
#endif

/* A number that stands by itself: compilers make vectors for Helium, which takes numbers below 2^-126 for zero. */
#if defined(__GNUC__) && defined(__ARM_FEATURE_MVE)
#define UACCEL_FLOAT_ALONE(value) __asm__("" : "+t"(value))
#else
#define UACCEL_FLOAT_ALONE(value)
#endif

/* `activation` is 0 for none, 1 for a lower bound, 2 for both. NaN becomes a bound. */
struct uaccel_float_finish {
    int32_t activation;
    float lower, upper;
};

UACCEL_KERNEL float uaccel_float_finish(const struct uaccel_float_finish *finish, float value)
{
    UACCEL_FLOAT_ALONE(value);
    if (finish->activation > 1) {
        value = value < finish->upper ? value : finish->upper;
    }
    UACCEL_FLOAT_ALONE(value);
    return finish->activation == 0 || value > finish->lower ? value : finish->lower;
}

UACCEL_KERNEL float uaccel_float_mac(float sum, float value, float weight)
{
    float product = value * weight;
    UACCEL_FLOAT_ROUNDED(product);
    sum += product;
    UACCEL_FLOAT_ALONE(sum);
    return sum;
}

/* How many taps at `first`, `first` + `step`, ... lie before an input; and how many of `extent` lie inside of it. */
UACCEL_KERNEL uaccel_index uaccel_float_skipped(uaccel_index first, uaccel_index step)
{
    return first < 0 ? (step - 1 - first) / step : 0;
}

UACCEL_KERNEL uaccel_index uaccel_float_inside(uaccel_index first, uaccel_index step, uaccel_index extent,
                                               uaccel_index end)
{
    const uaccel_index last = first < end ? (end - 1 - first) / step + 1 : 0;
    const uaccel_index skipped = uaccel_float_skipped(first, step);
    const uaccel_index taken = last < extent ? last : extent;
    return taken > skipped ? taken - skipped : 0;
}

#define UACCEL_FLOAT_TAKE(n, value)                             \
    {                                                           \
        const float taken = value;                              \
        sum##n##0 = uaccel_float_mac(sum##n##0, taken, weight0); \
        sum##n##1 = uaccel_float_mac(sum##n##1, taken, weight1); \
        sum##n##2 = uaccel_float_mac(sum##n##2, taken, weight2); \
        sum##n##3 = uaccel_float_mac(sum##n##3, taken, weight3); \
    }
/* A tap of four channels that lie side by side, each with its weight. */
#define UACCEL_FLOAT_TAP(n, tap)                                       \
    {                                                                  \
        sum##n##0 = uaccel_float_mac(sum##n##0, (tap)[0], weights[0]); \
        sum##n##1 = uaccel_float_mac(sum##n##1, (tap)[1], weights[1]); \
        sum##n##2 = uaccel_float_mac(sum##n##2, (tap)[2], weights[2]); \
        sum##n##3 = uaccel_float_mac(sum##n##3, (tap)[3], weights[3]); \
    }
#define UACCEL_FLOAT_BEGIN(n) float sum##n##0 = 0, sum##n##1 = 0, sum##n##2 = 0, sum##n##3 = 0
#define UACCEL_FLOAT_END(n)          \
    {                                \
        sums[4 * (n)] = sum##n##0;     \
        sums[4 * (n) + 1] = sum##n##1; \
        sums[4 * (n) + 2] = sum##n##2; \
        sums[4 * (n) + 3] = sum##n##3; \
    }

#define UACCEL_FN(name) name
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_WIDE(weights, first, second) (*(first) = (weights)[0], *(second) = (weights)[1])
#include "uaccel_float_rows_body.h"

/* Convolution of floats, fully connected layers among them: NHWC. Weights of four output channels lie side by side, the
 * last of a group filled with zeros. */

struct uaccel_conv2d_float {
    struct uaccel_geometry geo;
    uaccel_index groups, depth; /* elements of a group's window */
    int32_t copies;             /* 0: a window is a pixel, and they follow each other */
    int32_t adds;               /* 1: another tensor, before the activation */
    struct uaccel_float_finish finish;
};

/* A group's window of an output pixel, borders and all. */
UACCEL_KERNEL void uaccel_conv2d_float_window(const struct uaccel_conv2d_float *p, const float *input,
                                              uaccel_index pixel, uaccel_index group, float *window)
{
    const uaccel_index channels = p->geo.in_channels / p->groups;
    const uaccel_index top = pixel / p->geo.out_width * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = pixel % p->geo.out_width * p->geo.stride_width - p->geo.pad_left;
    input += group * channels;
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            const bool inside = y >= 0 && y < p->geo.in_height && x >= 0 && x < p->geo.in_width;
            const float *const source = input + (y * p->geo.in_width + x) * p->geo.in_channels;
            for (uaccel_index c = 0; c < channels; ++c) {
                *window++ = inside ? source[c] : 0.0f;
            }
        }
    }
}

#define UACCEL_FN(name) name##_f32
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_SUMS1 uaccel_float_row
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows
#include "uaccel_conv2d_float_body.h"

/* Depthwise convolution of floats, four channels of up to two pixels at a time: NHWC.
 *
 * Weights of four channels lie side by side, tap by tap; those of channels that are left over follow one by one. */

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
