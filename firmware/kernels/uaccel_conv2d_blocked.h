/* Convolution for any CPU, four output channels of two pixels at a time: NHWC, int8, one group. */
#ifndef UACCEL_CONV2D_BLOCKED_H
#define UACCEL_CONV2D_BLOCKED_H

#include "uaccel_blocked.h"

struct uaccel_conv2d_blocked {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_blocked_finish finish;
};

/* The window of an output pixel, borders and all, side by side. */
UACCEL_KERNEL void uaccel_conv2d_blocked_window(const struct uaccel_conv2d_blocked *p, const int8_t *input,
                                                uaccel_index pixel, int8_t *window)
{
    const uaccel_index top = pixel / p->out_width * p->stride_height - p->pad_top;
    const uaccel_index left = pixel % p->out_width * p->stride_width - p->pad_left;
    const uaccel_index reach = (p->kernel_width - 1) * p->dilation_width;
    const bool whole = p->dilation_width == 1 && left >= 0 && left + reach < p->in_width;
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        const bool inside = y >= 0 && y < p->in_height;
        if (inside && whole) {
            memcpy(window, input + (y * p->in_width + left) * p->in_channels,
                   (size_t)(p->kernel_width * p->in_channels));
            window += p->kernel_width * p->in_channels;
            continue;
        }
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->dilation_width;
            if (inside && x >= 0 && x < p->in_width) {
                memcpy(window, input + (y * p->in_width + x) * p->in_channels, (size_t)p->in_channels);
            } else {
                memset(window, p->input_zero_point, (size_t)p->in_channels);
            }
            window += p->in_channels;
        }
    }
}

/* scratch: two windows. */
UACCEL_SHARED void uaccel_conv2d_blocked_s8(const struct uaccel_conv2d_blocked *p, const int8_t *input,
                                            const int8_t *weights, const int32_t *constants, int8_t *output,
                                            void *scratch)
{
    const uaccel_index depth = p->kernel_height * p->kernel_width * p->in_channels;
    const uaccel_index pixels = p->out_height * p->out_width;
    int8_t *first = scratch, *second = first + depth;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            const uaccel_index more = pixel + 1 < pixels ? p->out_channels : 0;
            uaccel_conv2d_blocked_window(p, input, pixel, first);
            if (more > 0) {
                uaccel_conv2d_blocked_window(p, input, pixel + 1, second);
            }
            uaccel_blocked_channels(&p->finish, first, more > 0 ? second : first, depth, weights, constants,
                                    p->out_channels, output, output + more);
            output += p->out_channels + more;
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

/* Pixels or rows side by side, each with weights of its own for each channel and no others. */
struct uaccel_rows_blocked {
    uaccel_index rows, depth, out_channels;
    struct uaccel_blocked_finish finish;
};

UACCEL_SHARED void uaccel_rows_blocked_s8(const struct uaccel_rows_blocked *p, const int8_t *input,
                                          const int8_t *weights, const int32_t *constants, int8_t *output)
{
    for (uaccel_index row = 0; row < p->rows; row += 2) {
        const uaccel_index more = row + 1 < p->rows ? 1 : 0;
        uaccel_blocked_channels(&p->finish, input, input + more * p->depth, p->depth, weights, constants,
                                p->out_channels, output, output + more * p->out_channels);
        input += (1 + more) * p->depth;
        output += (1 + more) * p->out_channels;
    }
}

#endif
