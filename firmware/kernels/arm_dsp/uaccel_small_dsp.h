/* Convolution and fully connected layers for Arm's DSP extension in little flash: NHWC, int8.
 *
 * Eight output channels of one pixel at a time; two channels share a word as in uaccel_dsp.h: with 256 * a + b as it is
 * SMLAD adds up S = 256 * A + B, with its low bytes alone it adds up B. A channel's constants take nine bytes, or four
 * where all have the same scale. A window's rows are runs of bytes, filled up to a multiple of four;
 * their weights there are zero. */
#ifndef UACCEL_SMALL_DSP_H
#define UACCEL_SMALL_DSP_H

#include "uaccel_kernel.h"

#if !defined(__ARM_FEATURE_DSP)
#error "made for Arm's DSP extension: name the CPU to the compiler (-mcpu=cortex-m4), or compile for another --board"
#endif

/* The output stage; the offset that uaccel_dsp.h reads for each channel is worked out from its shift. */
struct uaccel_small_finish {
    int32_t zero_point, clamp_min, clamp_max;
    uaccel_index scale_step; /* 1: channels have scales of their own; 0: one serves all */
};

/* Sums become bytes. channel: the first one's number. */
UACCEL_SHARED void uaccel_small_bytes(const struct uaccel_small_finish *p, const int32_t *sums, const int32_t *bias,
                                      const int32_t *multiplier, const int8_t *shift, int8_t *output,
                                      uaccel_index channel, uaccel_index count)
{
    const struct uaccel_small_finish f = *p; /* which stores of bytes cannot change */
    const uint32_t zero_point = (uint32_t)(2 * f.zero_point + 1);
    bias += channel;
    multiplier += channel * f.scale_step;
    shift += channel * f.scale_step;
    output += channel;
    do {
        const int32_t right = *shift;
        int32_t value = 2 * (*sums++ + *bias++);
        __asm__("smmulr %0, %0, %1" : "+r"(value) : "r"(*multiplier));
        value += (value >> 31) + ((int32_t)(zero_point << right) >> 1);
        value >>= right;
        value = value < f.clamp_min ? f.clamp_min : value;
        *output++ = (int8_t)(value > f.clamp_max ? f.clamp_max : value);
        multiplier += f.scale_step;
        shift += f.scale_step;
    } while (--count > 0);
}

struct uaccel_small_dsp {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index direct;      /* 1: pixels are read where they are */
    uaccel_index block_words; /* words of weights for eight channels */
    struct uaccel_small_finish finish;
};

UACCEL_ASSEMBLY_BEGIN

/* Sums of eight channels. input..end: bytes, a multiple of four. */
UACCEL_ASSEMBLY void uaccel_small_sums(const int8_t *input, const int32_t *weights, const int8_t *end, int32_t *sums)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_step x, s, b, s2, b2\n"
            "ldmia r1!, {r12, lr}\n"
            "smlad \\s, \\x, r12, \\s\n"
            "sxtb16 r12, r12\n"
            "smlad \\b, \\x, r12, \\b\n"
            "smlad \\s2, \\x, lr, \\s2\n"
            "sxtb16 lr, lr\n"
            "smlad \\b2, \\x, lr, \\b2\n"
            ".endm\n"
            "push {r2-r11, lr}\n"
            ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "1: ldr r2, [r0], #4\n"
            "sxtb16 r3, r2, ror #8\n"
            "sxtb16 r2, r2\n"
            "uaccel_step r2, r4, r5, r6, r7\n"
            "uaccel_step r2, r8, r9, r10, r11\n"
            "uaccel_step r3, r4, r5, r6, r7\n"
            "uaccel_step r3, r8, r9, r10, r11\n"
            "ldr r12, [sp]\n"
            "cmp r0, r12\n"
            "bne 1b\n"
            "sub r4, r4, r5\n"
            "sub r6, r6, r7\n"
            "sub r8, r8, r9\n"
            "sub r10, r10, r11\n"
            ".irp sum, r4, r6, r8, r10\n"
            "asr \\sum, \\sum, #8\n"
            ".endr\n"
            "pop {r2, r3}\n"
            "stmia r3, {r4-r11}\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_step\n");
}

UACCEL_ASSEMBLY_END

/* The window of one output pixel, borders and all. */
UACCEL_SHARED void uaccel_small_window(const struct uaccel_small_dsp *p, const int8_t *input, uaccel_index top,
                                       uaccel_index left, int8_t *target)
{
    const uaccel_index depth = p->in_channels, run = (p->kernel_width * depth + 3) & ~3;
    const uaccel_index skip = left < 0 ? -left : 0;
    const uaccel_index over = left + p->kernel_width - p->in_width;
    const uaccel_index inside = p->kernel_width - skip - (over > 0 ? over : 0);
    for (uaccel_index y = top; y < top + p->kernel_height; ++y) {
        memset(target, p->input_zero_point, (size_t)run);
        if (y >= 0 && y < p->in_height && inside > 0) {
            memcpy(target + skip * depth, input + (y * p->in_width + left + skip) * depth, (size_t)(inside * depth));
        }
        target += run;
    }
}

/* scratch: a window, where pixels are not read where they are. */
UACCEL_SHARED void uaccel_small_dsp_s8(const struct uaccel_small_dsp *p, const int8_t *input, const int32_t *weights,
                                       const int32_t *bias, const int32_t *multiplier, const int8_t *shift,
                                       int8_t *output, void *scratch)
{
    const uaccel_index window = ((p->kernel_width * p->in_channels + 3) & ~3) * p->kernel_height;
    const uaccel_index pixels = p->batch * p->out_height * p->out_width;
    uaccel_index x = 0, y = 0;
    for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
        const uaccel_index top = y * p->stride_height - p->pad_top, left = x * p->stride_width - p->pad_left;
        const int8_t *from = input + (top * p->in_width + left) * p->in_channels;
        const int32_t *words = weights;
        if (!p->direct) {
            uaccel_small_window(p, input, top, left, scratch);
            from = scratch;
        }
        for (uaccel_index channel = 0; channel < p->out_channels; channel += 8) {
            const uaccel_index left_over = p->out_channels - channel;
            int32_t sums[8];
            uaccel_small_sums(from, words, from + window, sums);
            uaccel_small_bytes(&p->finish, sums, bias, multiplier, shift, output, channel,
                               left_over < 8 ? left_over : 8);
            words += p->block_words;
        }
        output += p->out_channels;
        if (++x == p->out_width) {
            x = 0;
            if (++y == p->out_height) {
                y = 0;
                input += p->in_height * p->in_width * p->in_channels;
            }
        }
    }
}

#endif
