/* Convolution for any CPU, four output channels of two pixels at a time: NHWC, one group. */
#ifndef UACCEL_CONV2D_BLOCKED_H
#define UACCEL_CONV2D_BLOCKED_H

#include "uaccel_blocked.h"

struct uaccel_conv2d_blocked {
    struct uaccel_geometry geo;      /* in_channels: bytes of those that are read */
    uaccel_index in_pixel;           /* bytes from one to the next */
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
    const uaccel_index top = pixel / p->geo.out_width * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = pixel % p->geo.out_width * p->geo.stride_width - p->geo.pad_left;
    const uaccel_index reach = (p->geo.kernel_width - 1) * p->geo.dilation_width;
    const bool whole = p->runs && left >= 0 && left + reach < p->geo.in_width;
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        const bool inside = y >= 0 && y < p->geo.in_height;
        if (inside && whole) {
            memcpy(window, image + (y * p->geo.in_width + left) * p->in_pixel,
                   (size_t)(p->geo.kernel_width * p->geo.in_channels));
            window += p->geo.kernel_width * p->geo.in_channels;
            continue;
        }
        for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            if (inside && x >= 0 && x < p->geo.in_width) {
                memcpy(window, image + (y * p->geo.in_width + x) * p->in_pixel, (size_t)p->geo.in_channels);
            } else {
                memset(window, (int)p->input_zero_point, (size_t)p->geo.in_channels);
            }
            window += p->geo.in_channels;
        }
    }
}

/* How far the results of the next pixel are. */
UACCEL_KERNEL uaccel_index uaccel_conv2d_blocked_step(const struct uaccel_conv2d_blocked *p, uaccel_index *column)
{
    if (++*column < p->geo.out_width) {
        return p->out_pixel;
    }
    *column = 0;
    return p->out_row - (p->geo.out_width - 1) * p->out_pixel;
}

/* Pixels or rows side by side, each with weights of its own for each channel and no others. */
struct uaccel_rows_blocked {
    uaccel_index rows, depth, out_channels;
    struct uaccel_blocked_finish finish;
};

#define UACCEL_BODY "uaccel_conv2d_blocked_body.h"
#include "uaccel_roundings.h"

#endif
