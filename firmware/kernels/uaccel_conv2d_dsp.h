/* Convolution for Arm's DSP extension: NHWC, int8; of several groups, one a call.
 *
 * Two windows at a time are widened to halves of words, and then all output channels run over them by fours. Of each
 * window the pixels of a row are a run of bytes, filled up to a multiple of four; their weights there are zero. Where
 * pixels lie apart, by dilation or with other groups' channels between them, a window is copied first. */
#ifndef UACCEL_CONV2D_DSP_H
#define UACCEL_CONV2D_DSP_H

#include "uaccel_dsp.h"

struct uaccel_conv2d_dsp {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index row, pixel, out_pixel; /* bytes from one to the next */
    uaccel_index out_skip;              /* from what would be a row's next result to the next row's first */
    uaccel_index tops, lefts;           /* of windows that are read where they are: below these */
    uaccel_index reach;                 /* bytes from the beginning of such a window to its end */
    uaccel_index direct;                /* where they end at last; 0: their pixels lie apart */
    uaccel_index quad_words;            /* words of the stream for four output channels */
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
            memcpy(target + skip * p->in_channels, input + y * p->row + (left + skip) * p->pixel,
                   (size_t)(inside * p->in_channels));
        }
        target += run;
    }
}

/* The same where its pixels lie apart. */
UACCEL_SHARED void uaccel_conv2d_dsp_gather(const struct uaccel_conv2d_dsp *p, const int8_t *input, uaccel_index top,
                                            uaccel_index left, int8_t *target)
{
    const uaccel_index run = (p->kernel_width * p->in_channels + 3) & ~3;
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        memset(target, p->input_zero_point, (size_t)run);
        for (uaccel_index kx = 0; y >= 0 && y < p->in_height && kx < p->kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->dilation_width;
            if (x >= 0 && x < p->in_width) {
                memcpy(target + kx * p->in_channels, input + y * p->row + x * p->pixel, (size_t)p->in_channels);
            }
        }
        target += run;
    }
}

/* The row and the column at which the window of an output pixel begins, the pixel's column, and its results. */
struct uaccel_conv2d_dsp_window {
    uaccel_index top, left, x;
    int8_t *output;
};

UACCEL_KERNEL void uaccel_conv2d_dsp_next(const struct uaccel_conv2d_dsp *p, struct uaccel_conv2d_dsp_window *w)
{
    w->left += p->stride_width;
    w->output += p->out_pixel;
    if (++w->x == p->out_width) {
        w->x = 0;
        w->left = -p->pad_left;
        w->top += p->stride_height;
        w->output += p->out_skip;
    }
}

/* Where a window's pixels lie; NULL where some lie outside, or its words reach beyond the input, or they lie apart. */
UACCEL_KERNEL const int8_t *uaccel_conv2d_dsp_place(const struct uaccel_conv2d_dsp *p, const int8_t *input,
                                                    const struct uaccel_conv2d_dsp_window *w)
{
    if ((uint32_t)w->top >= (uint32_t)p->tops || (uint32_t)w->left >= (uint32_t)p->lefts) {
        return NULL;
    }
    const uaccel_index start = w->top * p->row + w->left * p->pixel;
    return start + p->reach > p->direct ? NULL : input + start;
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
        const uaccel_index step = p->dilation_height * p->row;
        for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
            patches = uaccel_dsp_widen(patches, a + ky * step, b + ky * step, words);
        }
        return patches;
    }
    const uaccel_index bytes = words * 4 * p->kernel_height;
    int8_t *stage = (int8_t *)(patches + bytes * 2);
    if (p->direct > 0) {
        uaccel_conv2d_dsp_stage(p, input, first->top, first->left, stage);
        uaccel_conv2d_dsp_stage(p, input, second->top, second->left, stage + bytes);
    } else {
        uaccel_conv2d_dsp_gather(p, input, first->top, first->left, stage);
        uaccel_conv2d_dsp_gather(p, input, second->top, second->left, stage + bytes);
    }
    return uaccel_dsp_widen(patches, stage, stage + bytes, bytes >> 2);
}

#define UACCEL_BODY "uaccel_conv2d_dsp_body.h"
#define UACCEL_NEEDS_FPU
#include "uaccel_roundings.h"

#endif
