/* Depthwise convolution for any CPU, four channels at a time: int8, one output channel an input channel.
 *
 * Of each output pixel the addresses of the pixels under its window are listed, and then four channels at a time run
 * over the list. What lies outside is a pixel of zero points. */
#ifndef UACCEL_DEPTHWISE_CONV2D_BLOCKED_H
#define UACCEL_DEPTHWISE_CONV2D_BLOCKED_H

#include "uaccel_blocked.h"

struct uaccel_depthwise_conv2d_blocked {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_blocked_finish finish;
};

/* The addresses of the pixels under a window; `outside` for those that there are not. */
UACCEL_KERNEL void uaccel_depthwise_blocked_list(const struct uaccel_depthwise_conv2d_blocked *p,
                                                 const int8_t *input, uaccel_index top, uaccel_index left,
                                                 const int8_t *outside, const int8_t **taps)
{
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->dilation_width;
            const bool inside = y >= 0 && y < p->in_height && x >= 0 && x < p->in_width;
            *taps++ = inside ? input + (y * p->in_width + x) * p->channels : outside;
        }
    }
}

#define UACCEL_BODY "uaccel_depthwise_conv2d_blocked_body.h"
#include "uaccel_roundings.h"

#endif
