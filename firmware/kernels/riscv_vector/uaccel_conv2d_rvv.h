/* Convolution for RISC-V's vector extension, 32 output channels of three pixels or 16 of six at a time: NHWC,
 * int8, one group. */
#ifndef UACCEL_CONV2D_RVV_H
#define UACCEL_CONV2D_RVV_H

#include "uaccel_rvv.h"

struct uaccel_conv2d_rvv {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_rvv_finish finish;
};

/* A row of a window: what lies outside is zero points. Where it ends. */
UACCEL_KERNEL int8_t *uaccel_conv2d_rvv_row(const struct uaccel_conv2d_rvv *p, const int8_t *row, uaccel_index left,
                                            int8_t *window)
{
    const uaccel_index depth = p->in_channels;
    if (p->dilation_width == 1) {
        const uaccel_index before = left < 0 ? (-left < p->kernel_width ? -left : p->kernel_width) : 0;
        const uaccel_index room = p->in_width - left < p->kernel_width ? p->in_width - left : p->kernel_width;
        const uaccel_index inside = room > before ? room - before : 0;
        window = uaccel_rvv_fill(window, p->input_zero_point, before * depth);
        window = uaccel_rvv_copy(window, row + (left + before) * depth, inside * depth);
        return uaccel_rvv_fill(window, p->input_zero_point, (p->kernel_width - before - inside) * depth);
    }
    for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
        const uaccel_index x = left + kx * p->dilation_width;
        window = x >= 0 && x < p->in_width ? uaccel_rvv_copy(window, row + x * depth, depth)
                                           : uaccel_rvv_fill(window, p->input_zero_point, depth);
    }
    return window;
}

/* The window of an output pixel, borders and all, side by side. */
UACCEL_SHARED void uaccel_conv2d_rvv_window(const struct uaccel_conv2d_rvv *p, const int8_t *input, uaccel_index top,
                                            uaccel_index left, int8_t *window)
{
    const uaccel_index run = p->kernel_width * p->in_channels, pitch = p->in_width * p->in_channels;
    if (p->dilation_width == 1 && top >= 0 && left >= 0 && left + p->kernel_width <= p->in_width &&
        top + (p->kernel_height - 1) * p->dilation_height < p->in_height) {
        const int8_t *row = input + top * pitch + left * p->in_channels;
        for (const int8_t *end = window + p->kernel_height * run; window != end;) {
            window = uaccel_rvv_copy(window, row, run);
            row += p->dilation_height * pitch;
        }
        return;
    }
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        window = y >= 0 && y < p->in_height
                     ? uaccel_conv2d_rvv_row(p, input + y * pitch, left, window)
                     : uaccel_rvv_fill(window, p->input_zero_point, run);
    }
}

/* scratch: as many windows as are best taken at a time. */
UACCEL_SHARED void uaccel_conv2d_rvv_s8(const struct uaccel_conv2d_rvv *p, const int8_t *input, const int8_t *weights,
                                        const int32_t *constants, int8_t *output, void *scratch)
{
    const uaccel_index depth = p->kernel_height * p->kernel_width * p->in_channels;
    const uaccel_index pixels = p->out_height * p->out_width;
    const uaccel_index together = uaccel_rvv_together(p->out_channels % UACCEL_RVV_LANES);
    const struct uaccel_rvv_block block = {&p->finish, weights, constants, depth, p->out_channels, 0};
    for (uaccel_index n = 0; n < p->batch; ++n) {
        uaccel_index y = 0, x = 0;
        for (uaccel_index pixel = 0; pixel < pixels; pixel += together) {
            const uaccel_index count = pixels - pixel < together ? pixels - pixel : together;
            for (uaccel_index i = 0; i < count; ++i) {
                uaccel_conv2d_rvv_window(p, input, y * p->stride_height - p->pad_top,
                                         x * p->stride_width - p->pad_left, (int8_t *)scratch + i * depth);
                if (++x == p->out_width) {
                    x = 0;
                    ++y;
                }
            }
            uaccel_rvv_channels(block, scratch, count, output);
            output += count * p->out_channels;
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

#endif
