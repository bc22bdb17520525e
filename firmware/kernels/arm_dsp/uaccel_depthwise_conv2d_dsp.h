/* Depthwise convolution for Arm's DSP extension: int8, four output channels at least.
 *
 * Of each output pixel the addresses of the pixels under its window are listed, and then four channels at a time run
 * over the list; the last four may overlap those before. What lies outside is a pixel of zero points.
 * Where an input channel has several output channels, the rows under a row of windows are copied into a ring first,
 * each channel as often as it is read. */
#ifndef UACCEL_DEPTHWISE_CONV2D_DSP_H
#define UACCEL_DEPTHWISE_CONV2D_DSP_H

#include "uaccel_dsp.h"

struct uaccel_depthwise_conv2d_dsp {
    uaccel_index batch, in_height, in_width;
    uaccel_index channels, multiplier; /* output channels, and how many an input channel has */
    uaccel_index ring;                 /* rows of the ring; without one those of the input */
    uaccel_index out_height, out_width;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index taps; /* those of the window */
    struct uaccel_dsp_finish finish;
};

/* The addresses of the pixels under a window; `outside` for those that there are not. `origin`: the input's row that
 * lies first in the ring. */
UACCEL_KERNEL void uaccel_depthwise_dsp_list(const struct uaccel_depthwise_conv2d_dsp *p, const int8_t *rows,
                                             uaccel_index origin, uaccel_index top, uaccel_index left,
                                             const int8_t *outside, const int8_t **taps)
{
    const uaccel_index row = p->in_width * p->channels, step = p->dilation_width * p->channels;
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        const bool inside = y >= 0 && y < p->in_height;
        const uaccel_index place = y - origin;
        const int8_t *pixel = rows + (place < p->ring ? place : place - p->ring) * row + left * p->channels;
        uaccel_index x = left;
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            *taps++ = inside && (uint32_t)x < (uint32_t)p->in_width ? pixel : outside;
            pixel += step;
            x += p->dilation_width;
        }
    }
}

/* Rows of the input into the ring, from `first` to below `end`; every channel `multiplier` times. */
UACCEL_KERNEL void uaccel_depthwise_dsp_repeat(const struct uaccel_depthwise_conv2d_dsp *p, const int8_t *input,
                                               uaccel_index first, uaccel_index end, int8_t *ring)
{
    const uaccel_index row = p->in_width * p->channels;
    for (uaccel_index y = first; y < end; ++y) {
        const int8_t *source = input + y * (row / p->multiplier);
        int8_t *target = ring + y % p->ring * row;
        for (const int8_t *const last = target + row; target != last; target += p->multiplier) {
            const int8_t value = *source++;
            for (uaccel_index i = 0; i < p->multiplier; ++i) {
                target[i] = value;
            }
        }
    }
}

#define UACCEL_BODY "uaccel_depthwise_conv2d_dsp_body.h"
#define UACCEL_NEEDS_FPU
#include "uaccel_roundings.h"

#endif
