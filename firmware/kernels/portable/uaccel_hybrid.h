/* Layers of floats whose weights are bytes: rows of floats become bytes in each run, and bytes are multiplied. */
#ifndef UACCEL_HYBRID_H
#define UACCEL_HYBRID_H

#include "uaccel_float.h"

/* Rows of floats as bytes, each by the range of its elements; zero has a byte of its own, the zero point. */

struct uaccel_quantize_rows {
    uaccel_index rows, depth;
    int32_t symmetric; /* 1: the zero point is 0 */
};

/* The nearest integer to a number, halves away from zero; 512 for larger ones and for NaN. */
UACCEL_KERNEL int32_t uaccel_hybrid_nearest(float value)
{
    value = value < 512.0f ? value : 512.0f;
    value = value > -512.0f ? value : -512.0f;
    const int32_t whole = (int32_t)value;
    const float rest = value - (float)whole;
    return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

/* The zero point of numbers from `low` to `high`, which are `step` from each other. */
UACCEL_KERNEL int32_t uaccel_hybrid_zero_point(double low, double high, double step)
{
    const double below = low / step, above = high / step;
    double place = 128.0 - below < 127.0 + above ? -128.0 - below : 127.0 - above;
    place = place < 127.0 ? place : 127.0;
    place = place > -128.0 ? place : -128.0;
    return (int32_t)(place + (place < 0.0 ? -0.5 : 0.5));
}

/* What numbers from `low` to `high` are multiplied by to give steps. */
UACCEL_KERNEL float uaccel_hybrid_grid(bool symmetric, float low, float high, float *scale, int32_t *zero_point)
{
    *zero_point = 0;
    if (low >= high) {
        *scale = 1.0f;
        return 0.0f;
    }
    if (symmetric) {
        const float reach = -low > high ? -low : high;
        *scale = reach / 127.0f;
        return 127.0f / reach;
    }
    const double step = (double)(high - low) / 255.0;
    *scale = (float)step;
    *zero_point = uaccel_hybrid_zero_point((double)low, (double)high, step);
    return *scale > 0.0f ? 1.0f / *scale : 0.0f;
}

/* The bytes may lie over the numbers, beginning where they do. */
UACCEL_KERNEL void uaccel_quantize_rows_f32(const struct uaccel_quantize_rows *p, const float *input, int8_t *output,
                                            float *scales, int32_t *zero_points)
{
    const int32_t least = p->symmetric ? -127 : -128;
    for (uaccel_index row = 0; row < p->rows; ++row) {
        float low = 0.0f, high = 0.0f;
        for (uaccel_index k = 0; k < p->depth; ++k) {
            float value = input[k];
            UACCEL_FLOAT_ALONE(value);
            low = value < low ? value : low;
            high = value > high ? value : high;
        }
        int32_t zero_point;
        const float inverse = uaccel_hybrid_grid(p->symmetric != 0, low, high, &scales[row], &zero_point);
        for (uaccel_index k = 0; k < p->depth; ++k) {
            float value = input[k];
            UACCEL_FLOAT_ALONE(value);
            const int32_t byte = uaccel_hybrid_nearest(value * inverse) + zero_point;
            const int32_t above = byte > least ? byte : least;
            output[k] = (int8_t)(above < 127 ? above : 127);
        }
        zero_points[row] = zero_point;
        input += p->depth;
        output += p->depth;
    }
}

/* Convolution of such bytes, fully connected layers among them: NHWC. */

struct uaccel_hybrid_conv2d {
    struct uaccel_geometry geo;
    uaccel_index groups;
    int32_t channel_first; /* 1: times the channel's factor, then times the scale; 0: times their product */
    struct uaccel_float_finish finish;
};

UACCEL_KERNEL float uaccel_hybrid_result(const struct uaccel_hybrid_conv2d *p, int32_t sum, float factor, float bias,
                                         float scale)
{
    float value = (float)sum;
    if (p->channel_first) {
        value *= factor;
        UACCEL_FLOAT_ALONE(value);
        value *= scale;
    } else {
        float both = scale * factor;
        UACCEL_FLOAT_ALONE(both);
        value *= both;
    }
    UACCEL_FLOAT_ROUNDED(value);
    UACCEL_FLOAT_ALONE(value);
    value += bias;
    return uaccel_float_finish(&p->finish, value);
}

/* A group's window of an output pixel, in steps from the zero point; borders are zeros. */
UACCEL_KERNEL void uaccel_hybrid_window(const struct uaccel_hybrid_conv2d *p, const int8_t *input, int32_t zero_point,
                                        uaccel_index pixel, int16_t *window)
{
    const uaccel_index channels = p->geo.in_channels / p->groups;
    const uaccel_index top = pixel / p->geo.out_width * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = pixel % p->geo.out_width * p->geo.stride_width - p->geo.pad_left;
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            const bool inside = y >= 0 && y < p->geo.in_height && x >= 0 && x < p->geo.in_width;
            const int8_t *const source = input + (y * p->geo.in_width + x) * p->geo.in_channels;
            for (uaccel_index c = 0; c < channels; ++c) {
                *window++ = (int16_t)(inside ? source[c] - zero_point : 0);
            }
        }
    }
}

/* Four sums of `depth` products; weights of four output channels lie side by side. */
#define UACCEL_HYBRID_TAP(k)                  \
    {                                         \
        const int32_t value = window[k];      \
        sum0 += value * weights[4 * (k)];     \
        sum1 += value * weights[4 * (k) + 1]; \
        sum2 += value * weights[4 * (k) + 2]; \
        sum3 += value * weights[4 * (k) + 3]; \
    }
UACCEL_SHARED void uaccel_hybrid_sums(const int16_t *restrict window, const int8_t *restrict weights,
                                      uaccel_index depth, int32_t *restrict sums)
{
    int32_t sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (; depth >= 4; depth -= 4, window += 4, weights += 16) {
        UACCEL_HYBRID_TAP(0)
        UACCEL_HYBRID_TAP(1)
        UACCEL_HYBRID_TAP(2)
        UACCEL_HYBRID_TAP(3)
    }
    for (; depth > 0; --depth, ++window, weights += 4) {
        UACCEL_HYBRID_TAP(0)
    }
    sums[0] = sum0;
    sums[1] = sum1;
    sums[2] = sum2;
    sums[3] = sum3;
}

/* `window` holds a group's window. The last four channels of a group are filled up with zeros. */
UACCEL_KERNEL void uaccel_hybrid_conv2d_s8(const struct uaccel_hybrid_conv2d *p, const int8_t *input,
                                           const int8_t *weights, const float *factors, const float *bias,
                                           const float *scales, const int32_t *zero_points, float *output,
                                           int16_t *window)
{
    const uaccel_index pixels = p->geo.out_height * p->geo.out_width, group = p->geo.out_channels / p->groups;
    const uaccel_index channels = p->geo.in_channels / p->groups;
    const uaccel_index depth = p->geo.kernel_height * p->geo.kernel_width * channels;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
            const int8_t *blocks = weights;
            for (uaccel_index g = 0; g < p->groups; ++g) {
                uaccel_hybrid_window(p, input + g * channels, zero_points[n], pixel, window);
                for (uaccel_index c = 0; c < group; c += 4) {
                    int32_t sums[4];
                    uaccel_hybrid_sums(window, blocks, depth, sums);
                    for (uaccel_index i = 0; i < 4 && c + i < group; ++i) {
                        const uaccel_index channel = g * group + c + i;
                        *output++ = uaccel_hybrid_result(p, sums[i], factors[channel], bias[channel], scales[n]);
                    }
                    blocks += depth * 4;
                }
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

/* Depthwise: a channel of the output reads one of the input. The weights of all channels lie side by side, by taps. */

UACCEL_KERNEL int32_t uaccel_hybrid_channel(const struct uaccel_hybrid_conv2d *p, const int8_t *input,
                                            const int8_t *weights, int32_t zero_point, uaccel_index top,
                                            uaccel_index left)
{
    int32_t sum = 0;
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            if (y >= 0 && y < p->geo.in_height && x >= 0 && x < p->geo.in_width) {
                sum += (input[(y * p->geo.in_width + x) * p->geo.in_channels] - zero_point) * *weights;
            }
            weights += p->geo.out_channels;
        }
    }
    return sum;
}

UACCEL_KERNEL void uaccel_hybrid_depthwise_conv2d_s8(const struct uaccel_hybrid_conv2d *p, const int8_t *input,
                                                     const int8_t *weights, const float *factors, const float *bias,
                                                     const float *scales, const int32_t *zero_points, float *output)
{
    const uaccel_index multiplier = p->geo.out_channels / p->geo.in_channels;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index y = 0; y < p->geo.out_height; ++y) {
            for (uaccel_index x = 0; x < p->geo.out_width; ++x) {
                const uaccel_index top = y * p->geo.stride_height - p->geo.pad_top;
                const uaccel_index left = x * p->geo.stride_width - p->geo.pad_left;
                for (uaccel_index c = 0; c < p->geo.out_channels; ++c) {
                    const int8_t *const source = input + c / multiplier;
                    const int32_t sum = uaccel_hybrid_channel(p, source, weights + c, zero_points[n], top, left);
                    *output++ = uaccel_hybrid_result(p, sum, factors[c], bias[c], scales[n]);
                }
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

#endif
