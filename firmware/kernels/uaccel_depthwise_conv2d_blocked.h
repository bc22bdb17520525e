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

/* Four channels from `channel` on, a multiple of four of them in all. */
UACCEL_SHARED void uaccel_depthwise_blocked_quad(const struct uaccel_depthwise_conv2d_blocked *p,
                                                 const int8_t *const *taps, uaccel_index channel,
                                                 const int8_t *weights, const int32_t *constants, int8_t *output)
{
    int32_t a = constants[0], b = constants[4], c = constants[8], d = constants[12];
    for (const int8_t *const *end = taps + p->kernel_height * p->kernel_width; taps != end; ++taps) {
        const int8_t *pixel = *taps + channel;
        a += pixel[0] * weights[0];
        b += pixel[1] * weights[1];
        c += pixel[2] * weights[2];
        d += pixel[3] * weights[3];
        weights += 4;
    }
    output[0] = uaccel_blocked_round(&p->finish, a, constants);
    output[1] = uaccel_blocked_round(&p->finish, b, constants + 4);
    output[2] = uaccel_blocked_round(&p->finish, c, constants + 8);
    output[3] = uaccel_blocked_round(&p->finish, d, constants + 12);
}

/* scratch: an address a tap, and a pixel. weights: for each four channels and each tap those of the channels. */
UACCEL_SHARED void uaccel_depthwise_conv2d_blocked_s8(const struct uaccel_depthwise_conv2d_blocked *p,
                                                      const int8_t *input, const int8_t *weights,
                                                      const int32_t *constants, int8_t *output, void *scratch)
{
    const uaccel_index count = p->kernel_height * p->kernel_width;
    const int8_t **taps = scratch;
    int8_t *outside = (int8_t *)(taps + count);
    memset(outside, p->input_zero_point, (size_t)p->channels);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                uaccel_depthwise_blocked_list(p, input, y * p->stride_height - p->pad_top,
                                              x * p->stride_width - p->pad_left, outside, taps);
                for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                    uaccel_depthwise_blocked_quad(p, taps, channel, weights + channel * count,
                                                  constants + channel * 4, output + channel);
                }
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
