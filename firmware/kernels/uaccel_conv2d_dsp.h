/* Convolution for Arm's DSP extension: NHWC, int8, one group, no dilation along rows.
 *
 * Two windows at a time are widened to halves of words, and then all output channels run over them by fours. Of each
 * window the pixels of a row are a run of bytes, filled up to a multiple of four; their weights there are zero. */
#ifndef UACCEL_CONV2D_DSP_H
#define UACCEL_CONV2D_DSP_H

#include "uaccel_dsp.h"

struct uaccel_conv2d_dsp {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index quad_words; /* words of the stream for four output channels */
    struct uaccel_dsp_finish finish;
};

/* The window of one output pixel, borders and all, as bytes. */
UACCEL_SHARED void uaccel_conv2d_dsp_stage(const struct uaccel_conv2d_dsp *p, const int8_t *input, uaccel_index top,
                                           uaccel_index left, int8_t *target)
{
    const uaccel_index run = (p->kernel_width * p->in_channels + 3) & ~3;
    const uaccel_index skip = left < 0 ? -left : 0;
    const uaccel_index over = left + p->kernel_width - p->in_width;
    const uaccel_index inside = p->kernel_width - skip - (over > 0 ? over : 0);
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        memset(target, p->input_zero_point, (size_t)run);
        if (y >= 0 && y < p->in_height && inside > 0) {
            memcpy(target + skip * p->in_channels, input + (y * p->in_width + left + skip) * p->in_channels,
                   (size_t)(inside * p->in_channels));
        }
        target += run;
    }
}

/* The row and the column at which the window of an output pixel begins, and the pixel's column. */
struct uaccel_conv2d_dsp_window {
    uaccel_index top, left, x;
};

UACCEL_KERNEL void uaccel_conv2d_dsp_next(const struct uaccel_conv2d_dsp *p, struct uaccel_conv2d_dsp_window *w)
{
    w->left += p->stride_width;
    if (++w->x == p->out_width) {
        w->x = 0;
        w->left = -p->pad_left;
        w->top += p->stride_height;
    }
}

/* Where a window's pixels lie; NULL where some lie outside, or its words reach beyond the input. */
UACCEL_KERNEL const int8_t *uaccel_conv2d_dsp_place(const struct uaccel_conv2d_dsp *p, const int8_t *input,
                                                    const struct uaccel_conv2d_dsp_window *w)
{
    const uaccel_index row = p->in_width * p->in_channels;
    const uaccel_index bottom = w->top + (p->kernel_height - 1) * p->dilation_height;
    const uaccel_index run = (p->kernel_width * p->in_channels + 3) & ~3;
    const bool inside =
        w->top >= 0 && w->left >= 0 && bottom < p->in_height && w->left + p->kernel_width <= p->in_width;
    if (!inside || bottom * row + w->left * p->in_channels + run > p->in_height * row) {
        return NULL;
    }
    return input + w->top * row + w->left * p->in_channels;
}

/* Both windows, widened; where they end. */
UACCEL_SHARED int16_t *uaccel_conv2d_dsp_patches(const struct uaccel_conv2d_dsp *p, const int8_t *input,
                                                 const struct uaccel_conv2d_dsp_window *first,
                                                 const struct uaccel_conv2d_dsp_window *second, int16_t *patches)
{
    const uaccel_index words = (p->kernel_width * p->in_channels + 3) >> 2;
    const int8_t *a = uaccel_conv2d_dsp_place(p, input, first);
    const int8_t *b = uaccel_conv2d_dsp_place(p, input, second);
    if (a != NULL && b != NULL) {
        const uaccel_index step = p->dilation_height * p->in_width * p->in_channels;
        for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
            patches = uaccel_dsp_widen(patches, a + ky * step, b + ky * step, words);
        }
        return patches;
    }
    const uaccel_index bytes = words * 4 * p->kernel_height;
    int8_t *stage = (int8_t *)(patches + bytes * 2);
    uaccel_conv2d_dsp_stage(p, input, first->top, first->left, stage);
    uaccel_conv2d_dsp_stage(p, input, second->top, second->left, stage + bytes);
    return uaccel_dsp_widen(patches, stage, stage + bytes, bytes >> 2);
}

#define UACCEL_BODY "uaccel_conv2d_dsp_body.h"
#define UACCEL_NEEDS_FPU
#include "uaccel_roundings.h"

#endif
