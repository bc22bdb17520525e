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

#define UACCEL_BODY "uaccel_int4_body.h"
#include "uaccel_roundings.h"

#endif
