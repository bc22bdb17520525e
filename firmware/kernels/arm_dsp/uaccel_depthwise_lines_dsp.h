/* Depthwise convolution with windows of one row or one column for Arm's DSP extension: int8, steps of 1 along them, one
 * output channel an input channel, four or more.
 *
 * A line is a row or a column of the image. Four of its channels at a time become lines of halves of words, borders and
 * all, and then each is convolved four outputs at a time. Where output pixels lie as those of the input do, the output
 * may take the input's place. */
#ifndef UACCEL_DEPTHWISE_LINES_DSP_H
#define UACCEL_DEPTHWISE_LINES_DSP_H

#include "uaccel_depthwise_rows_dsp.h"

struct uaccel_depthwise_lines_dsp {
    uaccel_index batch, channels;
    uaccel_index lines, line, out_line;    /* how many, and bytes from one to the next */
    uaccel_index pixels, pixel;            /* of a line of the input, and bytes from one to the next */
    uaccel_index out_pixels, out_pixel;    /* the same of the output */
    uaccel_index image, out_image;         /* bytes */
    uaccel_index pad;                      /* pixels before a line */
    uaccel_index pitch;                    /* words of a line of halves */
    uaccel_index groups, skipped;          /* of four taps; steps of eight that are not needed */
    int32_t input_zero_point;
    int32_t sign;   /* as in struct uaccel_dsp_finish */
    int32_t offset; /* 2 zero point + 1 */
};

/* What uaccel_dsp_line works on. */
struct uaccel_dsp_line_job {
    int32_t *weights; /* where they are widened to */
    uaccel_index groups, skipped;
    uaccel_index count; /* of outputs, one at least */
    uaccel_index pixel; /* bytes from an output to the next */
    int32_t offset;     /* times 2^shift and halved it is that of the output stage */
};
UACCEL_AT4(uaccel_dsp_line_job, 0, weights, groups, skipped, count);
UACCEL_AT(uaccel_dsp_line_job, pixel, 16);
UACCEL_AT(uaccel_dsp_line_job, offset, 20);

enum { UACCEL_DSP_LINE_STAGE = 3 }; /* words of the stream for a channel, before its weights */

typedef void uaccel_dsp_line(const int32_t *halves, const int32_t *stream, int8_t *output,
                             const struct uaccel_dsp_line_job *job);

UACCEL_ASSEMBLY_BEGIN

/* One channel. stream: twice its sum at the start; multiplier, shift; bytes of weights. These become words of two,
 * twice their value: of weights 0 and 1 for outputs at even places, of the one before and weight 0 for those at odd
 * ones, and so on in turn. A step takes two taps of four outputs. */
#define UACCEL_DSP_LINE(name, sign)                                                                                  \
    UACCEL_ASSEMBLY void name(const int32_t *halves, const int32_t *stream, int8_t *output,                          \
                              const struct uaccel_dsp_line_job *job)                                                 \
    {                                                                                                                \
        __asm__(".syntax unified\n" UACCEL_DSP_SLOTS                                                                 \
                ".macro uaccel_tap now, next, i\n"                                                                   \
                "ldr \\next, [r0, #4 * \\i + 4]\n"                                                                   \
                "ldr r10, [r1, #8 * \\i]\n"                                                                          \
                "ldr r11, [r1, #8 * \\i + 4]\n"                                                                      \
                "smlad r4, \\now, r10, r4\n"                                                                         \
                "smlad r5, \\now, r11, r5\n"                                                                         \
                "smlad r6, \\next, r10, r6\n"                                                                        \
                "smlad r7, \\next, r11, r7\n"                                                                        \
                ".endm\n"                                                                                            \
                ".macro uaccel_round a\n"                                                                            \
                ".if " #sign "\n"                                                                                    \
                "add r12, r9, \\a, asr #31\n"                                                                        \
                "smmlar \\a, \\a, r8, r12\n"                                                                         \
                ".else\n"                                                                                            \
                "smmlar \\a, \\a, r8, r9\n"                                                                          \
                ".endif\n"                                                                                           \
                "asr \\a, \\a, r10\n"                                                                                \
                "ssat \\a, #8, \\a\n"                                                                                \
                ".endm\n"                                                                                            \
                "push {r4-r11, lr}\n"                                                                                \
                "uaccel_frame\n"                                                                                     \
                "ldmia r3, {r4-r8, lr}\n"                                                                            \
                "ldmia r1!, {r9-r11}\n"                                                                              \
                "uaccel_keep r9, 4\n"  /* sum */                                                                     \
                "uaccel_keep r10, 5\n" /* multiplier */                                                              \
                "uaccel_keep r11, 7\n" /* shift */                                                                   \
                "lsl lr, lr, r11\n"                                                                                  \
                "asr lr, lr, #1\n"                                                                                   \
                "uaccel_keep lr, 6\n" /* offset */                                                                   \
                "uaccel_keep r7, 9\n"                                                                                \
                "uaccel_keep r8, 8\n"                                                                                \
                "mov r3, r2\n"                                                                                       \
                "lsl r2, r6, #2\n"                                                                                   \
                "sub r0, r0, r2\n"                                                                                   \
                "sub lr, r4, r2, lsl #1\n"                                                                           \
                "mov r12, #28\n"                                                                                     \
                "adr r7, 3f\n"                                                                                       \
                "mla r7, r6, r12, r7\n"                                                                              \
                "orr r7, #1\n"                                                                                       \
                "uaccel_keep r7, 10\n"                                                                               \
                "mov r12, #0\n"                                                                                      \
                "1: ldr r9, [r1], #4\n"                                                                              \
                "sxtb16 r10, r9\n"                                                                                   \
                "sxtb16 r11, r9, ror #8\n"                                                                           \
                "sadd16 r10, r10, r10\n"                                                                             \
                "sadd16 r11, r11, r11\n"                                                                             \
                "pkhbt r6, r10, r11, lsl #16\n"                                                                      \
                "pkhbt r7, r12, r10, lsl #16\n"                                                                      \
                "pkhtb r8, r11, r10, asr #16\n"                                                                      \
                "pkhbt r9, r11, r10\n"                                                                               \
                "asr r12, r11, #16\n"                                                                                \
                "stmia r4!, {r6-r9}\n"                                                                               \
                "subs r5, #1\n"                                                                                      \
                "bne 1b\n"                                                                                           \
                "mov r1, lr\n"                                                                                       \
                "2: uaccel_recall r4, 4\n"                                                                           \
                "mov r5, r4\n"                                                                                       \
                "mov r6, r4\n"                                                                                       \
                "mov r7, r4\n"                                                                                       \
                "uaccel_recall r12, 10\n"                                                                            \
                "ldr r8, [r0, r2]\n"                                                                                 \
                "mov r9, r8\n"                                                                                       \
                "bx r12\n"                                                                                           \
                ".balign 4\n"                                                                                        \
                "3: uaccel_tap r8, r9, 0\n"                                                                          \
                "uaccel_tap r9, r8, 1\n"                                                                             \
                "uaccel_tap r8, r9, 2\n"                                                                             \
                "uaccel_tap r9, r8, 3\n"                                                                             \
                "uaccel_tap r8, r9, 4\n"                                                                             \
                "uaccel_tap r9, r8, 5\n"                                                                             \
                "uaccel_tap r8, r9, 6\n"                                                                             \
                "uaccel_tap r9, r8, 7\n"                                                                             \
                ".org 3b + 8 * 28\n"                                                                                 \
                "uaccel_recall r8, 5\n"                                                                              \
                "uaccel_recall r9, 6\n"                                                                              \
                "uaccel_recall r10, 7\n"                                                                             \
                "uaccel_recall r11, 8\n"                                                                             \
                "uaccel_round r4\n"                                                                                  \
                "uaccel_round r5\n"                                                                                  \
                "uaccel_round r6\n"                                                                                  \
                "uaccel_round r7\n"                                                                                  \
                "uaccel_recall r12, 9\n"                                                                             \
                "strb r4, [r3]\n"                                                                                    \
                "subs r12, #4\n"                                                                                     \
                "blt 4f\n"                                                                                           \
                "uaccel_keep r12, 9\n"                                                                               \
                "strb r5, [r3, r11]\n"                                                                               \
                "add r3, r3, r11, lsl #1\n"                                                                          \
                "strb r6, [r3]\n"                                                                                    \
                "strb r7, [r3, r11]\n"                                                                               \
                "add r3, r3, r11, lsl #1\n"                                                                          \
                "add r0, #8\n"                                                                                       \
                "bne 2b\n"                                                                                           \
                "b 5f\n"                                                                                             \
                "4: adds r12, #3\n"                                                                                  \
                "beq 5f\n"                                                                                           \
                "strb r5, [r3, r11]\n"                                                                               \
                "subs r12, #1\n"                                                                                     \
                "beq 5f\n"                                                                                           \
                "strb r6, [r3, r11, lsl #1]\n"                                                                       \
                "5: uaccel_leave\n"                                                                                  \
                UACCEL_PURGE("uaccel_tap, uaccel_round") UACCEL_DSP_END_SLOTS);                                      \
    }

UACCEL_DSP_LINE(uaccel_dsp_line_plain, 0)
UACCEL_DSP_LINE(uaccel_dsp_line_sign, 1)
UACCEL_ASSEMBLY_END

/* All channels of a line; `halves` has its borders already, but for the halves of words with pixels. */
UACCEL_KERNEL void uaccel_depthwise_lines_one(const struct uaccel_depthwise_lines_dsp *p, const int8_t *input,
                                              const int32_t *stream, int8_t *output, int32_t *halves,
                                              const struct uaccel_dsp_planes_job *widened,
                                              const struct uaccel_dsp_line_job *job, uaccel_dsp_line *convolve)
{
    const uaccel_index words = UACCEL_DSP_LINE_STAGE + p->groups;
    for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
        const uaccel_index first = channel + 4 > p->channels ? p->channels - 4 : channel;
        uaccel_dsp_planes(halves + (p->pad >> 1), input + first, widened);
        for (uaccel_index i = 0; i < 4; ++i) {
            convolve(halves + i * p->pitch, stream + (first + i) * words, output + first + i, job);
        }
    }
}

/* scratch: four lines of halves, and four words for each four taps. */
UACCEL_SHARED void uaccel_depthwise_lines_images(const struct uaccel_depthwise_lines_dsp *p, const int8_t *input,
                                                 const int32_t *stream, int8_t *output, void *scratch,
                                                 uaccel_dsp_line *convolve)
{
    int32_t *const halves = scratch;
    const uint32_t outside = (uint32_t)(p->input_zero_point & 0xFF) * 0x01010101u;
    const uaccel_index odd = p->pad & 1, pixels = p->pixels - odd;
    const struct uaccel_dsp_planes_job widened = {
        p->pitch * 4, p->pixel, outside, odd, pixels >> 1, pixels & 1, 0, p->pitch, 0, 1, 0, 1, {0, 0},
    };
    const struct uaccel_dsp_line_job job = {
        halves + 4 * p->pitch, p->groups, p->skipped, p->out_pixels, p->out_pixel, p->offset,
    };
    for (uaccel_index i = 0; i < 4 * p->pitch; ++i) {
        halves[i] = (int32_t)(((uint32_t)p->input_zero_point & 0xFFFFu) * 0x10001u);
    }
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index line = 0; line < p->lines; ++line) {
            uaccel_depthwise_lines_one(p, input + line * p->line, stream, output + line * p->out_line, halves,
                                       &widened, &job, convolve);
        }
        input += p->image;
        output += p->out_image;
    }
}

UACCEL_KERNEL void uaccel_depthwise_lines_dsp_s8(const struct uaccel_depthwise_lines_dsp *p, const int8_t *input,
                                                 const int32_t *stream, int8_t *output, void *scratch)
{
    uaccel_depthwise_lines_images(p, input, stream, output, scratch,
                                  p->sign ? uaccel_dsp_line_sign : uaccel_dsp_line_plain);
}

#endif
