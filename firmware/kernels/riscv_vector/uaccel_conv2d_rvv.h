/* Convolution and fully connected layers for RISC-V's vector extension. */
#ifndef UACCEL_CONV2D_RVV_H
#define UACCEL_CONV2D_RVV_H

#include "uaccel_rvv.h"

/* Convolution for RISC-V's vector extension, 32 output channels of three pixels or 16 of six at a time: NHWC,
 * int8, one group. */

struct uaccel_conv2d_rvv {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    struct uaccel_rvv_finish finish;
};

/* A row of a window: what lies outside is zero points. Where it ends. */
UACCEL_KERNEL int8_t *uaccel_conv2d_rvv_row(const struct uaccel_conv2d_rvv *p, const int8_t *row, uaccel_index left,
                                            int8_t *window)
{
    const uaccel_index depth = p->geo.in_channels;
    if (p->geo.dilation_width == 1) {
        const uaccel_index before = left < 0 ? (-left < p->geo.kernel_width ? -left : p->geo.kernel_width) : 0;
        const uaccel_index right = p->geo.in_width - left;
        const uaccel_index room = right < p->geo.kernel_width ? right : p->geo.kernel_width;
        const uaccel_index inside = room > before ? room - before : 0;
        window = uaccel_rvv_fill(window, p->input_zero_point, before * depth);
        window = uaccel_rvv_copy(window, row + (left + before) * depth, inside * depth);
        return uaccel_rvv_fill(window, p->input_zero_point, (p->geo.kernel_width - before - inside) * depth);
    }
    for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
        const uaccel_index x = left + kx * p->geo.dilation_width;
        window = x >= 0 && x < p->geo.in_width ? uaccel_rvv_copy(window, row + x * depth, depth)
                                           : uaccel_rvv_fill(window, p->input_zero_point, depth);
    }
    return window;
}

/* The window of an output pixel, borders and all, side by side. */
UACCEL_SHARED void uaccel_conv2d_rvv_window(const struct uaccel_conv2d_rvv *p, const int8_t *input, uaccel_index top,
                                            uaccel_index left, int8_t *window)
{
    const uaccel_index run = p->geo.kernel_width * p->geo.in_channels, pitch = p->geo.in_width * p->geo.in_channels;
    if (p->geo.dilation_width == 1 && top >= 0 && left >= 0 && left + p->geo.kernel_width <= p->geo.in_width &&
        top + (p->geo.kernel_height - 1) * p->geo.dilation_height < p->geo.in_height) {
        const int8_t *row = input + top * pitch + left * p->geo.in_channels;
        for (const int8_t *end = window + p->geo.kernel_height * run; window != end;) {
            window = uaccel_rvv_copy(window, row, run);
            row += p->geo.dilation_height * pitch;
        }
        return;
    }
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        window = y >= 0 && y < p->geo.in_height
                     ? uaccel_conv2d_rvv_row(p, input + y * pitch, left, window)
                     : uaccel_rvv_fill(window, p->input_zero_point, run);
    }
}

/* scratch: as many windows as are best taken at a time. */
UACCEL_SHARED void uaccel_conv2d_rvv_s8(const struct uaccel_conv2d_rvv *p, const int8_t *input, const int8_t *weights,
                                        const int32_t *constants, int8_t *output, void *scratch)
{
    const uaccel_index depth = p->geo.kernel_height * p->geo.kernel_width * p->geo.in_channels;
    const uaccel_index pixels = p->geo.out_height * p->geo.out_width;
    const uaccel_index together = uaccel_rvv_together(p->geo.out_channels % UACCEL_RVV_LANES);
    const struct uaccel_rvv_block block = {&p->finish, weights, constants, depth, p->geo.out_channels, 0};
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        uaccel_index y = 0, x = 0;
        for (uaccel_index pixel = 0; pixel < pixels; pixel += together) {
            const uaccel_index count = pixels - pixel < together ? pixels - pixel : together;
            for (uaccel_index i = 0; i < count; ++i) {
                uaccel_conv2d_rvv_window(p, input, y * p->geo.stride_height - p->geo.pad_top,
                                         x * p->geo.stride_width - p->geo.pad_left, (int8_t *)scratch + i * depth);
                if (++x == p->geo.out_width) {
                    x = 0;
                    ++y;
                }
            }
            uaccel_rvv_channels(block, scratch, count, output);
            output += count * p->geo.out_channels;
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

/* Fully connected for RISC-V's vector extension, 32 units of three rows or 16 of six at a time: int8. The pixels
 * of a pointwise convolution are such rows, too. */

struct uaccel_fully_connected_rvv {
    uaccel_index rows, depth, units;
    struct uaccel_rvv_finish finish;
};

UACCEL_SHARED void uaccel_fully_connected_rvv_s8(const struct uaccel_fully_connected_rvv *p, const int8_t *input,
                                                 const int8_t *weights, const int32_t *constants, int8_t *output)
{
    const struct uaccel_rvv_block block = {&p->finish, weights, constants, p->depth, p->units, 0};
    uaccel_rvv_channels(block, input, p->rows, output);
}

#endif
