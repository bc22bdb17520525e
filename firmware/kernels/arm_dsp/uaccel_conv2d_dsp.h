/* Convolution for Arm's DSP extension: NHWC, int8; of several groups, one a call.
 *
 * Two windows at a time are widened to halves of words, and then all output channels run over them by fours. A window
 * whose rows are whole words is read where it is; others, and those with borders, are copied first: where words end
 * amid a row, where pixels lie apart by dilation, or with other groups' channels between them. */
#ifndef UACCEL_CONV2D_DSP_H
#define UACCEL_CONV2D_DSP_H

#include "uaccel_dsp.h"

struct uaccel_conv2d_dsp {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    uaccel_index row, pixel, out_pixel; /* bytes from one to the next */
    uaccel_index out_skip;              /* from what would be a row's next result to the next row's first */
    uaccel_index tops, lefts;           /* of windows without borders: below these */
    uaccel_index reach;                 /* bytes from the beginning of such a window to the end of its last word */
    uaccel_index limit;                 /* where they end at last */
    int32_t copied;                     /* 1: all windows, 2: and pixel by pixel */
    uaccel_index window;                /* words of a window */
    uaccel_index quad_words;            /* words of the stream for four output channels */
    struct uaccel_dsp_quads finish;
};

/* Bytes, a few of them as a rule. */
UACCEL_KERNEL void uaccel_conv2d_dsp_copy(int8_t *target, const int8_t *source, uaccel_index count)
{
    if (count > 16) {
        memcpy(target, source, (size_t)count);
        return;
    }
    for (; count >= 4; count -= 4) {
        memcpy(target, source, 4);
        target += 4;
        source += 4;
    }
    for (; count > 0; --count) {
        *target++ = *source++;
    }
}

/* The window of one output pixel, borders and all. */
UACCEL_SHARED void uaccel_conv2d_dsp_border(const struct uaccel_conv2d_dsp *p, const int8_t *input, uaccel_index top,
                                            uaccel_index left, int8_t *target)
{
    const bool apart = p->copied == 2;
    const uaccel_index step = apart ? p->geo.dilation_width : p->geo.kernel_width;
    const uint32_t outside = (uint32_t)(p->input_zero_point & 0xFF) * 0x01010101u;
    for (uaccel_index i = 0; i < p->window; ++i) {
        memcpy(target + i * 4, &outside, 4); /* memset() often goes byte by byte */
    }
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        uaccel_index x = left;
        for (uaccel_index kx = 0; kx < (apart ? p->geo.kernel_width : 1); ++kx) {
            const uaccel_index begin = x < 0 ? 0 : x, next = apart ? x + 1 : x + step;
            const uaccel_index end = next < p->geo.in_width ? next : p->geo.in_width;
            if ((uint32_t)y < (uint32_t)p->geo.in_height && begin < end) {
                uaccel_conv2d_dsp_copy(target + (begin - x) * p->geo.in_channels, input + y * p->row + begin * p->pixel,
                                       (end - begin) * p->geo.in_channels);
            }
            target += (next - x) * p->geo.in_channels;
            x += step;
        }
    }
}

/* The row and the column at which the window of an output pixel begins, the pixel's column, and its results. */
struct uaccel_conv2d_dsp_window {
    uaccel_index top, left, x;
    int8_t *output;
};

UACCEL_KERNEL void uaccel_conv2d_dsp_next(const struct uaccel_conv2d_dsp *p, struct uaccel_conv2d_dsp_window *w,
                                          uaccel_index pixels)
{
    w->left += p->geo.stride_width * pixels;
    w->x += pixels;
    w->output += p->out_pixel * pixels;
    if (w->x == p->geo.out_width) {
        w->x = 0;
        w->left = -p->geo.pad_left;
        w->top += p->geo.stride_height;
        w->output += p->out_skip;
    }
}

/* How many pairs of windows from here on are in the input. */
UACCEL_SHARED uaccel_index uaccel_conv2d_dsp_pairs(const struct uaccel_conv2d_dsp *p,
                                                   const struct uaccel_conv2d_dsp_window *w)
{
    if (p->copied > 1 || (uint32_t)w->top >= (uint32_t)p->tops || (uint32_t)w->left >= (uint32_t)p->lefts) {
        return 0;
    }
    const uaccel_index step = p->geo.stride_width * p->pixel;
    const uaccel_index within = (p->lefts - 1 - w->left) / p->geo.stride_width + 1, row = p->geo.out_width - w->x;
    uaccel_index count = within < row ? within : row;
    uaccel_index end = w->top * p->row + w->left * p->pixel + (count - 1) * step + p->reach;
    for (; count > 1 && end > p->limit; --count) {
        end -= step;
    }
    return count >> 1;
}

/* Where a window's words are: in the input, or copied. `over`: bytes from a row's end to the next row. */
UACCEL_SHARED const int8_t *uaccel_conv2d_dsp_place(const struct uaccel_conv2d_dsp *p, const int8_t *input,
                                                    const struct uaccel_conv2d_dsp_window *w, int8_t *copy,
                                                    uaccel_index *over)
{
    if (p->copied == 0 && (uint32_t)w->top < (uint32_t)p->tops && (uint32_t)w->left < (uint32_t)p->lefts) {
        const uaccel_index start = w->top * p->row + w->left * p->pixel;
        if (start + p->reach <= p->limit) {
            *over = p->geo.dilation_height * p->row - p->geo.kernel_width * p->geo.in_channels;
            return input + start;
        }
    }
    uaccel_conv2d_dsp_border(p, input, w->top, w->left, copy);
    *over = 0;
    return copy;
}

/* Computes up to four output channels of two pixels, whose patches are there. */
typedef void uaccel_conv2d_dsp_last(struct uaccel_dsp_job *job, const int32_t *stream);

#define UACCEL_BODY "uaccel_conv2d_dsp_body.h"
#define UACCEL_NEEDS_FPU
#define UACCEL_DEEP_TOO
#include "uaccel_roundings.h"

#endif
