/* Convolution for any CPU, four output channels of two pixels at a time: NHWC, one group. */
#ifndef UACCEL_CONV2D_BLOCKED_H
#define UACCEL_CONV2D_BLOCKED_H

#include "uaccel_blocked.h"

struct uaccel_conv2d_blocked {
    uaccel_index batch, in_height, in_width;
    uaccel_index in_channels, in_pixel; /* bytes of those that are read, and from a pixel to the next */
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    uaccel_index out_pixel, out_row; /* elements from one to the next */
    int32_t runs;                    /* 1: the pixels of a window's row lie side by side */
    int32_t input_zero_point;
    struct uaccel_blocked_finish finish;
};

/* The window of an output pixel, borders and all, side by side. */
UACCEL_KERNEL void uaccel_conv2d_blocked_window(const struct uaccel_conv2d_blocked *p, const void *input,
                                                uaccel_index pixel, void *copy)
{
    const int8_t *const image = input;
    int8_t *window = copy;
    const uaccel_index top = pixel / p->out_width * p->stride_height - p->pad_top;
    const uaccel_index left = pixel % p->out_width * p->stride_width - p->pad_left;
    const uaccel_index reach = (p->kernel_width - 1) * p->dilation_width;
    const bool whole = p->runs && left >= 0 && left + reach < p->in_width;
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        const bool inside = y >= 0 && y < p->in_height;
        if (inside && whole) {
            memcpy(window, image + (y * p->in_width + left) * p->in_pixel,
                   (size_t)(p->kernel_width * p->in_channels));
            window += p->kernel_width * p->in_channels;
            continue;
        }
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->dilation_width;
            if (inside && x >= 0 && x < p->in_width) {
                memcpy(window, image + (y * p->in_width + x) * p->in_pixel, (size_t)p->in_channels);
            } else {
                memset(window, (int)p->input_zero_point, (size_t)p->in_channels);
            }
            window += p->in_channels;
        }
    }
}

/* How far the results of the next pixel are. */
UACCEL_KERNEL uaccel_index uaccel_conv2d_blocked_step(const struct uaccel_conv2d_blocked *p, uaccel_index *column)
{
    if (++*column < p->out_width) {
        return p->out_pixel;
    }
    *column = 0;
    return p->out_row - (p->out_width - 1) * p->out_pixel;
}

/* Pixels or rows side by side, each with weights of its own for each channel and no others. */
struct uaccel_rows_blocked {
    uaccel_index rows, depth, out_channels;
    struct uaccel_blocked_finish finish;
};

#define UACCEL_BODY "uaccel_conv2d_blocked_body.h"
#include "uaccel_roundings.h"

#endif
