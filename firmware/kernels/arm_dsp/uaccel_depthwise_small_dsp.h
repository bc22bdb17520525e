/* Depthwise convolution for Arm's DSP extension in little flash: NHWC, int8, a multiple of four channels.
 *
 * Weights stay bytes as the model has them. Of each output pixel the addresses of the pixels under its window are
 * listed, and then four channels at a time run over the list. What lies outside is a pixel of zero points. */
#ifndef UACCEL_DEPTHWISE_SMALL_DSP_H
#define UACCEL_DEPTHWISE_SMALL_DSP_H

#include "uaccel_dsp.h"

struct uaccel_depthwise_small_dsp {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    int32_t offset;           /* 2 zero point + 1 */
    uint32_t lowest, highest; /* a result, in each byte */
};

/* What uaccel_depthwise_small_quad works on, but for the channel. */
struct uaccel_depthwise_small_job {
    const int8_t **end; /* of the list of taps */
    const int8_t *weights;
    uaccel_index channels;
    const int32_t *bias, *multiplier;
    const int8_t *shift;
    int32_t offset;
    uint32_t lowest, highest;
    int8_t *output;
};
UACCEL_AT4(uaccel_depthwise_small_job, 0, end, weights, channels, bias);
UACCEL_AT4(uaccel_depthwise_small_job, 16, multiplier, shift, offset, lowest);
UACCEL_AT(uaccel_depthwise_small_job, highest, 32);
UACCEL_AT(uaccel_depthwise_small_job, output, 36);

UACCEL_ASSEMBLY_BEGIN

/* Four channels of a pixel, from this one on: one tap at least. */
UACCEL_ASSEMBLY void uaccel_depthwise_small_quad(const int8_t *const *taps,
                                                 const struct uaccel_depthwise_small_job *job, uaccel_index channel)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_round sum, multiplier, i\n"
            "lsls \\sum, \\sum, #1\n"
            "smmulr \\sum, \\sum, \\multiplier\n"
            ".if \\i < 3\n"
            "uxtb r3, r0, ror #8 * \\i\n"
            ".else\n"
            "lsrs r3, r0, #24\n"
            ".endif\n"
            "lsl \\multiplier, r12, r3\n"
            "add \\multiplier, \\sum, \\multiplier, asr #1\n"
            "add \\sum, \\multiplier, \\sum, asr #31\n"
            "asrs \\sum, \\sum, r3\n"
            "ssat \\sum, #8, \\sum\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "ldr r3, [r1, #12]\n"
            "add r3, r3, r2, lsl #2\n"
            "ldmia r3, {r4-r7}\n"
            "ldrd r8, r9, [r1, #4]\n"
            "add r8, r2\n"
            "ldr r12, [r1]\n"
            "1: ldr r3, [r0], #4\n"
            "ldr r10, [r8]\n"
            "ldr r3, [r3, r2]\n"
            "add r8, r9\n"
            "sxtb16 lr, r10, ror #8\n"
            "sxtb16 r10, r10\n"
            "sxtb16 r11, r3, ror #8\n"
            "sxtb16 r3, r3\n"
            "smlabb r4, r3, r10, r4\n"
            "smlatt r6, r3, r10, r6\n"
            "smlabb r5, r11, lr, r5\n"
            "smlatt r7, r11, lr, r7\n"
            "cmp r0, r12\n"
            "bne 1b\n"
            "ldr r3, [r1, #16]\n"
            "add r3, r3, r2, lsl #2\n"
            "ldmia r3, {r8-r11}\n"
            "ldrd r0, r12, [r1, #20]\n"
            "ldr r0, [r0, r2]\n"
            "uaccel_round r4, r8, 0\n"
            "uaccel_round r5, r9, 1\n"
            "uaccel_round r6, r10, 2\n"
            "uaccel_round r7, r11, 3\n"
            "bfi r4, r5, #8, #8\n"
            "bfi r4, r6, #16, #8\n"
            "bfi r4, r7, #24, #8\n"
            "ldrd r5, r6, [r1, #28]\n"
            "ldr r0, [r1, #36]\n"
            "ssub8 r7, r4, r5\n"
            "sel r4, r4, r5\n"
            "ssub8 r7, r6, r4\n"
            "sel r4, r4, r6\n"
            "str r4, [r0, r2]\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_round\n");
}

UACCEL_ASSEMBLY_END

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
    struct uaccel_depthwise_small_job job = {
        taps, weights, p->channels, bias, multiplier, shift, p->offset, p->lowest, p->highest, output,
    };
    memset(outside, p->input_zero_point, (size_t)p->channels);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                job.end = uaccel_depthwise_small_list(p, input, y * p->stride_height - p->pad_top,
                                                      x * p->stride_width - p->pad_left, outside, taps);
                for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                    uaccel_depthwise_small_quad(taps, &job, channel);
                }
                job.output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
