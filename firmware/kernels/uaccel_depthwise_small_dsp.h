/* Depthwise convolution for Arm's DSP extension in little flash: NHWC, int8, a multiple of four channels.
 *
 * Weights stay bytes as the model has them. Of each output pixel the addresses of the pixels under its window are
 * listed, and then four channels at a time run over the list. What lies outside is a pixel of zero points. */
#ifndef UACCEL_DEPTHWISE_SMALL_DSP_H
#define UACCEL_DEPTHWISE_SMALL_DSP_H

#include "uaccel_small_dsp.h"

struct uaccel_depthwise_small_dsp {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_small_finish finish;
};

/* The sums of four channels over so many taps. */
UACCEL_SHARED void uaccel_depthwise_small_sums(const int8_t *const *taps, uaccel_index count, const int8_t *weights,
                                               uaccel_index channel, uaccel_index channels, int32_t *results)
{
    int32_t sums[4] = {0};
    weights += channel;
    for (; count > 0; --count) {
        uint32_t x, w, x_odd, w_odd;
        memcpy(&x, *taps++ + channel, 4);
        memcpy(&w, weights, 4);
        __asm__("sxtb16 %0, %1, ror #8" : "=r"(x_odd) : "r"(x));
        __asm__("sxtb16 %0, %1, ror #8" : "=r"(w_odd) : "r"(w));
        __asm__("sxtb16 %0, %0" : "+r"(x));
        __asm__("sxtb16 %0, %0" : "+r"(w));
        __asm__("smlabb %0, %1, %2, %0" : "+r"(sums[0]) : "r"(x), "r"(w));
        __asm__("smlabb %0, %1, %2, %0" : "+r"(sums[1]) : "r"(x_odd), "r"(w_odd));
        __asm__("smlatt %0, %1, %2, %0" : "+r"(sums[2]) : "r"(x), "r"(w));
        __asm__("smlatt %0, %1, %2, %0" : "+r"(sums[3]) : "r"(x_odd), "r"(w_odd));
        weights += channels;
    }
    memcpy(results, sums, sizeof sums);
}

/* The addresses of the pixels under a window; where the list ends. */
UACCEL_SHARED const int8_t **uaccel_depthwise_small_list(const struct uaccel_depthwise_small_dsp *p,
                                                         const int8_t *input, uaccel_index top, uaccel_index left,
                                                         const int8_t *outside, const int8_t **taps)
{
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        uaccel_index x = left;
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            const bool inside = (uint32_t)top < (uint32_t)p->in_height && (uint32_t)x < (uint32_t)p->in_width;
            *taps++ = inside ? input + (top * p->in_width + x) * p->channels : outside;
            x += p->dilation_width;
        }
        top += p->dilation_height;
    }
    return taps;
}

/* scratch: a pixel, and an address a tap. */
UACCEL_SHARED void uaccel_depthwise_small_dsp_s8(const struct uaccel_depthwise_small_dsp *p, const int8_t *input,
                                                 const int8_t *weights, const int32_t *bias, const int32_t *multiplier,
                                                 const int8_t *shift, int8_t *output, void *scratch)
{
    int8_t *const outside = scratch;
    const int8_t **const taps = (const int8_t **)(void *)(outside + p->channels);
    memset(outside, p->input_zero_point, (size_t)p->channels);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const int8_t **end = uaccel_depthwise_small_list(p, input, y * p->stride_height - p->pad_top,
                                                                 x * p->stride_width - p->pad_left, outside, taps);
                for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                    int32_t sums[4];
                    uaccel_depthwise_small_sums(taps, (uaccel_index)(end - taps), weights, channel, p->channels, sums);
                    uaccel_small_bytes(&p->finish, sums, bias, multiplier, shift, output, channel, 4);
                }
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
