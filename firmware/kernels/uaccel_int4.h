/* Layers whose weights have four bits, two of them in a byte, the first in its low half: int8 activations, portable C.
 *
 * Each row of weights begins with a byte of its own. The bias already holds -input_zero_point * sum(weights). */
#ifndef UACCEL_INT4_H
#define UACCEL_INT4_H

#include "uaccel_conv2d.h"
#include "uaccel_depthwise_conv2d.h"
#include "uaccel_fully_connected.h"

/* The weight of the low and of the high half. */
UACCEL_KERNEL int32_t uaccel_int4_low(uint32_t byte)
{
    return (int32_t)(byte << 28) >> 28;
}

UACCEL_KERNEL int32_t uaccel_int4_high(uint32_t byte)
{
    return (int32_t)(byte << 24) >> 28;
}

/* acc and the products of `count` inputs with the weights of a row. */
UACCEL_KERNEL int32_t uaccel_int4_sum(const int8_t *input, const uint8_t *row, uaccel_index count, int32_t acc)
{
    for (uaccel_index i = 0; i + 1 < count; i += 2) {
        const uint32_t byte = row[i / 2];
        acc = uaccel_add_wrapping(acc, input[i] * uaccel_int4_low(byte));
        acc = uaccel_add_wrapping(acc, input[i + 1] * uaccel_int4_high(byte));
    }
    return count % 2 != 0 ? uaccel_add_wrapping(acc, input[count - 1] * uaccel_int4_low(row[count / 2])) : acc;
}

UACCEL_KERNEL void uaccel_fully_connected_int4_s8(const struct uaccel_fully_connected *p, const int8_t *input,
                                                  const uint8_t *weights, const int32_t *bias,
                                                  const int32_t *multiplier, const int8_t *shift, int8_t *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        for (uaccel_index u = 0; u < p->units; ++u) {
            const int32_t acc = uaccel_int4_sum(input, weights + u * ((p->depth + 1) / 2), p->depth, bias[u]);
            const int32_t scaled = uaccel_requantise(acc, multiplier[u * p->scale_step], shift[u * p->scale_step]);
            const int32_t value = uaccel_add_wrapping(scaled, p->output_zero_point);
            *output++ = (int8_t)uaccel_clamp(value, p->clamp_min, p->clamp_max);
        }
        input += p->depth;
    }
}

/* scratch: one group's patch, kernel_height * kernel_width * in_channels / groups elements. */
UACCEL_KERNEL void uaccel_conv2d_int4_s8(const struct uaccel_conv2d *p, const int8_t *input, const uint8_t *weights,
                                         const int32_t *bias, const int32_t *multiplier, const int8_t *shift,
                                         int8_t *output, void *scratch)
{
    int8_t *patch = scratch;
    const uaccel_index depth = p->in_channels / p->groups;
    const uaccel_index per_group = p->out_channels / p->groups;
    const uaccel_index size = p->kernel_height * p->kernel_width * depth;
    const uaccel_index pixels = p->out_height * p->out_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
            const uaccel_index top = pixel / p->out_width * p->stride_height - p->pad_top;
            const uaccel_index left = pixel % p->out_width * p->stride_width - p->pad_left;
            for (uaccel_index o = 0; o < p->out_channels; ++o) {
                if (o % per_group == 0) {
                    uaccel_conv2d_gather_s8(p, input, top, left, o / per_group * depth, depth, patch);
                }
                const int32_t acc = uaccel_int4_sum(patch, weights + o * ((size + 1) / 2), size, bias[o]);
                const int32_t scaled = uaccel_requantise(acc, multiplier[o * p->scale_step], shift[o * p->scale_step]);
                const int32_t value = uaccel_add_wrapping(scaled, p->output_zero_point);
                *output++ = (int8_t)uaccel_clamp(value, p->clamp_min, p->clamp_max);
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

/* A row of weights: those of all channels under one element of the window. */
UACCEL_KERNEL int32_t uaccel_depthwise_int4_sum(const struct uaccel_depthwise_conv2d *p, const int8_t *input,
                                                const uint8_t *weights, uaccel_index channel, int32_t acc,
                                                uaccel_index top, uaccel_index left)
{
    const uaccel_index times = p->out_channels / p->in_channels;
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->dilation_width;
            const bool inside = y >= 0 && y < p->in_height && x >= 0 && x < p->in_width;
            const int32_t value =
                inside ? input[(y * p->in_width + x) * p->in_channels + channel / times] : p->input_zero_point;
            const uint32_t byte = weights[channel / 2];
            acc = uaccel_add_wrapping(acc, value * (channel % 2 != 0 ? uaccel_int4_high(byte) : uaccel_int4_low(byte)));
            weights += (p->out_channels + 1) / 2;
        }
    }
    return acc;
}

UACCEL_KERNEL void uaccel_depthwise_conv2d_int4_s8(const struct uaccel_depthwise_conv2d *p, const int8_t *input,
                                                   const uint8_t *weights, const int32_t *bias,
                                                   const int32_t *multiplier, const int8_t *shift, int8_t *output)
{
    const uaccel_index pixels = p->out_height * p->out_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
            const uaccel_index top = pixel / p->out_width * p->stride_height - p->pad_top;
            const uaccel_index left = pixel % p->out_width * p->stride_width - p->pad_left;
            for (uaccel_index c = 0; c < p->out_channels; ++c) {
                const int32_t acc = uaccel_depthwise_int4_sum(p, input, weights, c, bias[c], top, left);
                const int32_t scaled = uaccel_requantise(acc, multiplier[c * p->scale_step], shift[c * p->scale_step]);
                const int32_t value = uaccel_add_wrapping(scaled, p->output_zero_point);
                *output++ = (int8_t)uaccel_clamp(value, p->clamp_min, p->clamp_max);
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

#endif
