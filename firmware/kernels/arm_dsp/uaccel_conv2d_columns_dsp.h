/* Convolution for Arm's DSP extension whose windows overlap: NHWC, int8, inputs and output channels by fours.
 *
 * Of two rows of the output, a pixel of each is computed at a time, one below the other. The columns under some of their
 * windows are widened to halves of words once, both rows' words in turn, borders and all; so a window is a run of
 * columns, and neighbours share what they have in common. */
#ifndef UACCEL_CONV2D_COLUMNS_DSP_H
#define UACCEL_CONV2D_COLUMNS_DSP_H

#include "uaccel_dsp.h"

struct uaccel_conv2d_columns_dsp {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index chunk;      /* pixels of a row whose columns are widened together */
    uaccel_index quad_words; /* words of the stream for four output channels */
    struct uaccel_dsp_quads finish;
};

/* What uaccel_dsp_widen works on. */
struct uaccel_dsp_widen_job {
    uaccel_index words, pixels;  /* of a pixel, and how many there are; one at least */
    uaccel_index over_a, over_b; /* bytes from a pixel's end to the next */
    uaccel_index skip;           /* from where it was widened to, to where the next is */
};
UACCEL_AT4(uaccel_dsp_widen_job, 0, words, pixels, over_a, over_b);
UACCEL_AT(uaccel_dsp_widen_job, skip, 16);

UACCEL_ASSEMBLY_BEGIN

/* Pixels of two rows, widened one in turn with the other. */
UACCEL_ASSEMBLY void uaccel_dsp_widen(int16_t *target, const int8_t *a, const int8_t *b,
                                      const struct uaccel_dsp_widen_job *job)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_four x, y\n"
            "sxtb16 r4, \\x\n"
            "sxtb16 r5, \\y\n"
            "sxtb16 r6, \\x, ror #8\n"
            "sxtb16 r7, \\y, ror #8\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "ldr lr, [r3, #4]\n"
            "1: ldr r12, [r3]\n"
            "lsrs r12, r12, #1\n"
            "bcc 2f\n"
            "ldr r10, [r1], #4\n"
            "ldr r11, [r2], #4\n"
            "uaccel_four r10, r11\n"
            "stmia r0!, {r4-r7}\n"
            "cmp r12, #0\n"
            "beq 3f\n"
            "2: ldr r10, [r1, #4]\n"
            "ldr r11, [r2, #4]\n"
            "ldr r8, [r1], #8\n"
            "ldr r9, [r2], #8\n"
            "uaccel_four r8, r9\n"
            "sxtb16 r8, r10\n"
            "sxtb16 r9, r11\n"
            "sxtb16 r10, r10, ror #8\n"
            "sxtb16 r11, r11, ror #8\n"
            "stmia r0!, {r4-r11}\n"
            "subs r12, #1\n"
            "bne 2b\n"
            "3: ldrd r4, r5, [r3, #8]\n"
            "ldr r6, [r3, #16]\n"
            "add r1, r4\n"
            "add r2, r5\n"
            "add r0, r6\n"
            "subs lr, #1\n"
            "bne 1b\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_four\n");
}
UACCEL_ASSEMBLY_END

/* Columns under the windows of two pixels, `apart` rows of the input from each other, and of those that follow. Rows and
 * columns that there are not are read from `outside`. */
UACCEL_SHARED void uaccel_conv2d_columns_widen(const struct uaccel_conv2d_columns_dsp *p, const int8_t *input,
                                               uaccel_index top, uaccel_index apart, uaccel_index left,
                                               uaccel_index columns, const int8_t *outside, int16_t *target)
{
    const uaccel_index depth = p->in_channels, row = p->in_width * depth, beyond = p->in_width - left;
    const uaccel_index missing = left < 0 ? -left : 0, begin = missing < columns ? missing : columns;
    const uaccel_index limit = beyond < columns ? beyond : columns, end = limit > begin ? limit : begin;
    const uaccel_index bounds[4] = {0, begin, end, columns};
    struct uaccel_dsp_widen_job job = {.words = depth >> 2, .skip = (p->kernel_height - 1) * depth * 4};
    for (uaccel_index part = 0; part < 3; ++part) {
        const uint32_t rows = part == 1 ? (uint32_t)p->in_height : 0;
        const uaccel_index first = bounds[part];
        int16_t *to = target + first * p->kernel_height * depth * 2;
        uaccel_index at = top * row + (left + first) * depth;
        job.pixels = bounds[part + 1] - first;
        for (uaccel_index y = top; job.pixels > 0 && y < top + p->kernel_height; ++y) {
            const bool a = (uint32_t)y < rows, b = (uint32_t)(y + apart) < rows;
            job.over_a = a ? 0 : -depth;
            job.over_b = b ? 0 : -depth;
            uaccel_dsp_widen(to, a ? input + at : outside, b ? input + at + apart * row : outside, &job);
            to += depth * 2;
            at += row;
        }
    }
}

#define UACCEL_BODY "uaccel_conv2d_columns_dsp_body.h"
#define UACCEL_NEEDS_FPU
#include "uaccel_roundings.h"

#endif
