/* Depthwise convolution of int16 activations: what kernels for several CPUs share. Padding counts for nothing. */
#ifndef UACCEL_DEPTHWISE16_H
#define UACCEL_DEPTHWISE16_H

#include "uaccel_pool.h"

/* Without zero points. */
struct uaccel_depthwise16 {
    struct uaccel_geometry geo;
    uaccel_index multiplier; /* output channels of each input channel */
    int32_t clamp_min, clamp_max;
};

/* The part of a window that is inside, which may be none: its first pixel, the number of its first tap, and how many
 * taps there are. */
struct uaccel_depthwise16_taps {
    const int16_t *pixels;
    uaccel_index first, height, width;
};

UACCEL_KERNEL struct uaccel_depthwise16_taps uaccel_depthwise16_taps(const struct uaccel_depthwise16 *p,
                                                                     const int16_t *input, uaccel_index y,
                                                                     uaccel_index x)
{
    const uaccel_index top = y * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = x * p->geo.stride_width - p->geo.pad_left;
    const struct uaccel_window_taps rows =
        uaccel_window_taps(top, p->geo.kernel_height, p->geo.dilation_height, 0, p->geo.in_height);
    const struct uaccel_window_taps columns =
        uaccel_window_taps(left, p->geo.kernel_width, p->geo.dilation_width, 0, p->geo.in_width);
    const uaccel_index row = top + rows.first * p->geo.dilation_height;
    const uaccel_index column = left + columns.first * p->geo.dilation_width;
    struct uaccel_depthwise16_taps taps;
    taps.pixels = input + (row * p->geo.in_width + column) * p->geo.in_channels;
    taps.first = rows.first * p->geo.kernel_width + columns.first;
    taps.height = rows.last - rows.first;
    taps.width = columns.last - columns.first;
    return taps;
}

/* A kernel: one window after the other. `each` gives every channel of one: void (p, taps, stream, output). */
#define UACCEL_DEPTHWISE16(name, each)                                                                       \
    UACCEL_KERNEL void name(const struct uaccel_depthwise16 *p, const int16_t *input, const int32_t *stream, \
                            int16_t *output)                                                                 \
    {                                                                                                        \
        for (uaccel_index n = 0; n < p->geo.batch; ++n) {                                                    \
            for (uaccel_index y = 0; y < p->geo.out_height; ++y) {                                           \
                for (uaccel_index x = 0; x < p->geo.out_width; ++x) {                                        \
                    const struct uaccel_depthwise16_taps taps = uaccel_depthwise16_taps(p, input, y, x);     \
                    each(p, &taps, stream, output);                                                          \
                    output += p->geo.out_channels;                                                           \
                }                                                                                            \
            }                                                                                                \
            input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;                                \
        }                                                                                                    \
    }

#endif
