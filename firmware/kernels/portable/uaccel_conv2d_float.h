/* Convolution of floats, fully connected layers among them: NHWC. Weights of four output channels lie side by side, the
 * last of a group filled with zeros. */
#ifndef UACCEL_CONV2D_FLOAT_H
#define UACCEL_CONV2D_FLOAT_H

#include "uaccel_float.h"

struct uaccel_conv2d_float {
    struct uaccel_geometry geo;
    uaccel_index groups, depth; /* elements of a group's window */
    int32_t copies;             /* 0: a window is a pixel, and they follow each other */
    int32_t adds;               /* 1: another tensor, before the activation */
    struct uaccel_float_finish finish;
};

/* A group's window of an output pixel, borders and all. */
UACCEL_KERNEL void uaccel_conv2d_float_window(const struct uaccel_conv2d_float *p, const float *input,
                                              uaccel_index pixel, uaccel_index group, float *window)
{
    const uaccel_index channels = p->geo.in_channels / p->groups;
    const uaccel_index top = pixel / p->geo.out_width * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = pixel % p->geo.out_width * p->geo.stride_width - p->geo.pad_left;
    input += group * channels;
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            const bool inside = y >= 0 && y < p->geo.in_height && x >= 0 && x < p->geo.in_width;
            const float *const source = input + (y * p->geo.in_width + x) * p->geo.in_channels;
            for (uaccel_index c = 0; c < channels; ++c) {
                *window++ = inside ? source[c] : 0.0f;
            }
        }
    }
}

#define UACCEL_FN(name) name##_f32
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_SUMS1 uaccel_float_row
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows
#include "uaccel_conv2d_float_body.h"

#endif
