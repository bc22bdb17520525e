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

/* The windows of output pixels `first` and `second`, widened; where they end. */
UACCEL_SHARED int16_t *uaccel_conv2d_dsp_patches(const struct uaccel_conv2d_dsp *p, const int8_t *input,
                                                 uaccel_index first, uaccel_index second, int16_t *patches)
{
    const uaccel_index top1 = first / p->out_width * p->stride_height - p->pad_top;
    const uaccel_index left1 = first % p->out_width * p->stride_width - p->pad_left;
    const uaccel_index top2 = second / p->out_width * p->stride_height - p->pad_top;
    const uaccel_index left2 = second % p->out_width * p->stride_width - p->pad_left;
    const uaccel_index words = (p->kernel_width * p->in_channels + 3) >> 2;
    const uaccel_index reach = (p->kernel_height - 1) * p->dilation_height;
    const uaccel_index lowest = top1 < top2 ? top1 : top2;
    const uaccel_index leftmost = left1 < left2 ? left1 : left2;
    const uaccel_index rightmost = left1 < left2 ? left2 : left1;
    const uaccel_index size = p->in_height * p->in_width * p->in_channels;
    const uaccel_index row = p->in_width * p->in_channels;
    const uaccel_index end = (top2 + reach) * row + rightmost * p->in_channels + words * 4;
    if (lowest >= 0 && top2 + reach < p->in_height && leftmost >= 0 && rightmost + p->kernel_width <= p->in_width &&
        end <= size) {
        const int8_t *a = input + top1 * row + left1 * p->in_channels;
        const int8_t *b = input + top2 * row + left2 * p->in_channels;
        for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
            patches = uaccel_dsp_widen(patches, a, b, words);
            a += p->dilation_height * row;
            b += p->dilation_height * row;
        }
        return patches;
    }
    const uaccel_index bytes = words * 4 * p->kernel_height;
    int8_t *stage = (int8_t *)(patches + 4 * p->kernel_height * words * 2);
    uaccel_conv2d_dsp_stage(p, input, top1, left1, stage);
    uaccel_conv2d_dsp_stage(p, input, top2, left2, stage + bytes);
    return uaccel_dsp_widen(patches, stage, stage + bytes, bytes >> 2);
}

/* scratch: for each byte of a window, filled up, four bytes; and two where there are borders or runs that end amid a
 * word. */
UACCEL_SHARED void uaccel_conv2d_dsp_s8(const struct uaccel_conv2d_dsp *p, const int8_t *input,
                                        const int32_t *stream, int8_t *output, void *scratch)
{
    const uaccel_index pixels = p->out_height * p->out_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            const bool both = pixel + 1 < pixels;
            const int16_t *end = uaccel_conv2d_dsp_patches(p, input, pixel, both ? pixel + 1 : pixel, scratch);
            const int32_t *quad = stream;
            for (uaccel_index channel = 0; channel < p->out_channels; channel += 4) {
                const uint64_t result = uaccel_dsp_2x4(scratch, end, quad, &p->finish);
                uaccel_dsp_store(output, (uint32_t)result, p->out_channels - channel);
                if (both) {
                    uaccel_dsp_store(output + p->out_channels, (uint32_t)(result >> 32), p->out_channels - channel);
                }
                output += 4;
                quad += p->quad_words;
            }
            output += (both ? 2 : 1) * p->out_channels - ((p->out_channels + 3) & ~3);
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

#endif
