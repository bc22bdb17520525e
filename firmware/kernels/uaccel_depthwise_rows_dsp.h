/* Depthwise convolution with 3x3 windows for Arm's DSP extension: int8, strides of 1 or 2 both ways, one output
 * channel an input channel, a multiple of four.
 *
 * Four channels at a time become planes of halves of words, borders and all, and then each plane is convolved two
 * output pixels at a time. Where a plane holds all rows, the output may take the input's place. */
#ifndef UACCEL_DEPTHWISE_ROWS_DSP_H
#define UACCEL_DEPTHWISE_ROWS_DSP_H

#include "uaccel_dsp.h"

struct uaccel_depthwise_rows_dsp {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width, stride;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index band;  /* output rows that a plane serves */
    uaccel_index pitch; /* words of a plane's row */
    uaccel_index plane; /* words of a plane */
    int32_t sign;       /* as in struct uaccel_dsp_finish */
};

enum { UACCEL_DEPTHWISE_ROWS_CHANNEL = 11 }; /* words of the stream for a channel */

/* What uaccel_dsp_rows works on. */
struct uaccel_dsp_rows_job {
    uaccel_index channels; /* bytes from an output pixel to the next */
    uaccel_index pairs;    /* bytes that an output row's pairs of pixels advance by */
    uaccel_index rows;     /* output rows, one at least */
    uaccel_index pitch;    /* bytes of a plane's row */
    uaccel_index step;     /* bytes from an output row's windows to the next */
    int32_t odd;           /* 1: a pixel remains behind the pairs */
};
UACCEL_AT(uaccel_dsp_rows_job, channels, 0);
UACCEL_AT(uaccel_dsp_rows_job, pairs, 4);
UACCEL_AT(uaccel_dsp_rows_job, rows, 8);
UACCEL_AT(uaccel_dsp_rows_job, pitch, 12);
UACCEL_AT(uaccel_dsp_rows_job, step, 16);
UACCEL_AT(uaccel_dsp_rows_job, odd, 20);

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* One channel. stream: twice its sum at the start, and once more; multiplier, offset, shift; of each row of weights
 * (0, 1) and (1, 2), all twice their value. */
#define UACCEL_DSP_ROWS(name, sign, stride)                                                                          \
    UACCEL_ASSEMBLY void name(const int32_t *plane, const int32_t *stream, int8_t *output,                           \
                                  const struct uaccel_dsp_rows_job *job)                                             \
    {                                                                                                                \
        __asm__(".syntax unified\n"                                                                                  \
                ".macro uaccel_row p, u, v, both\n"                                                                  \
                ".if \\both\n"                                                                                       \
                "ldrd r12, lr, [\\p], #4 * " #stride "\n"                                                            \
                ".else\n"                                                                                            \
                "ldrd r12, lr, [\\p]\n"                                                                              \
                ".endif\n"                                                                                           \
                "smlad r10, r12, \\u, r10\n"                                                                         \
                "smlabt r10, lr, \\v, r10\n"                                                                         \
                ".if \\both && " #stride " == 1\n"                                                                   \
                "smlatb r11, r12, \\u, r11\n"                                                                        \
                "smlad r11, lr, \\v, r11\n"                                                                          \
                ".elseif \\both\n"                                                                                   \
                "ldr r12, [\\p]\n"                                                                                   \
                "smlad r11, lr, \\u, r11\n"                                                                          \
                "smlabt r11, r12, \\v, r11\n"                                                                        \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                ".macro uaccel_round a\n"                                                                            \
                ".if " #sign "\n"                                                                                    \
                "smmulr \\a, \\a, r12\n"                                                                             \
                "add \\a, \\a, \\a, asr #31\n"                                                                       \
                "add \\a, \\a, lr\n"                                                                                 \
                ".else\n"                                                                                            \
                "smmlar \\a, \\a, r12, lr\n"                                                                         \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                ".macro uaccel_pixels both\n"                                                                        \
                "ldrd r10, r11, [sp]\n"                                                                              \
                "uaccel_row r0, r4, r5, \\both\n"                                                                    \
                "uaccel_row r1, r6, r7, \\both\n"                                                                    \
                "uaccel_row r2, r8, r9, \\both\n"                                                                    \
                "ldrd r12, lr, [sp, #8]\n"                                                                           \
                "uaccel_round r10\n"                                                                                 \
                ".if \\both\n"                                                                                       \
                "uaccel_round r11\n"                                                                                 \
                ".endif\n"                                                                                           \
                "ldrd r12, lr, [sp, #16]\n"                                                                          \
                "asr r10, r10, r12\n"                                                                                \
                "ssat r10, #8, r10\n"                                                                                \
                "strb r10, [r3]\n"                                                                                   \
                ".if \\both\n"                                                                                       \
                "asr r11, r11, r12\n"                                                                                \
                "ssat r11, #8, r11\n"                                                                                \
                "strb r11, [r3, lr]\n"                                                                               \
                "add r3, r3, lr, lsl #1\n"                                                                           \
                ".else\n"                                                                                            \
                "add r3, r3, lr\n"                                                                                   \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                "push {r4-r11, lr}\n"                                                                                \
                "sub sp, #48\n"                                                                                      \
                "ldmia r3, {r3, r9-r12, lr}\n" /* channels, pairs, rows, pitch, step, odd */                         \
                "ldmia r1!, {r4-r8}\n"         /* sum, sum, multiplier, offset, shift */                             \
                "strd r4, r5, [sp]\n"                                                                                \
                "strd r6, r7, [sp, #8]\n"                                                                            \
                "strd r8, r3, [sp, #16]\n"                                                                           \
                "add r4, r0, r9\n"                                                                                   \
                "strd r4, r10, [sp, #24]\n" /* where the row's pairs end; rows to go */                              \
                "sub r4, r12, r9\n"                                                                                  \
                "strd r4, r12, [sp, #32]\n" /* from there to the next row; from its beginning */                     \
                "str lr, [sp, #40]\n"                                                                                \
                "mov r3, r2\n"                                                                                       \
                "ldmia r1, {r4-r9}\n"                                                                                \
                "add r1, r0, r11\n"                                                                                  \
                "add r2, r1, r11\n"                                                                                  \
                "1: ldr r12, [sp, #24]\n"                                                                            \
                "b 3f\n"                                                                                             \
                "2: uaccel_pixels 1\n"                                                                               \
                "ldr r12, [sp, #24]\n"                                                                               \
                "3: cmp r0, r12\n"                                                                                   \
                "bne 2b\n"                                                                                           \
                "ldr r12, [sp, #40]\n"                                                                               \
                "cmp r12, #0\n"                                                                                      \
                "beq 4f\n"                                                                                           \
                "uaccel_pixels 0\n"                                                                                  \
                "4: ldrd r12, lr, [sp, #32]\n"                                                                       \
                "add r0, r12\n"                                                                                      \
                "add r1, r12\n"                                                                                      \
                "add r2, r12\n"                                                                                      \
                "ldrd r10, r11, [sp, #24]\n"                                                                         \
                "add r10, lr\n"                                                                                      \
                "subs r11, #1\n"                                                                                     \
                "strd r10, r11, [sp, #24]\n"                                                                         \
                "bne 1b\n"                                                                                           \
                "add sp, #48\n"                                                                                      \
                "pop {r4-r11, pc}\n"                                                                                 \
                ".purgem uaccel_row\n"                                                                               \
                ".purgem uaccel_round\n"                                                                             \
                ".purgem uaccel_pixels\n");                                                                          \
    }

UACCEL_DSP_ROWS(uaccel_dsp_rows_1, 0, 1)
UACCEL_DSP_ROWS(uaccel_dsp_rows_1_sign, 1, 1)
UACCEL_DSP_ROWS(uaccel_dsp_rows_2, 0, 2)
UACCEL_DSP_ROWS(uaccel_dsp_rows_2_sign, 1, 2)
#pragma GCC diagnostic pop

/* A word of each of four planes from four channels of two pixels. */
UACCEL_KERNEL void uaccel_depthwise_rows_put(int32_t *row, uaccel_index plane, uint32_t first, uint32_t second)
{
    const uint32_t a = (uint32_t)__sxtb16((int8x4_t)first), b = (uint32_t)__sxtb16((int8x4_t)second);
    const uint32_t c = (uint32_t)__sxtb16((int8x4_t)(first >> 8 | first << 24));
    const uint32_t d = (uint32_t)__sxtb16((int8x4_t)(second >> 8 | second << 24));
    row[0] = (int32_t)((a & 0xFFFFu) | b << 16);
    row[plane] = (int32_t)((c & 0xFFFFu) | d << 16);
    row[2 * plane] = (int32_t)(a >> 16 | (b & 0xFFFF0000u));
    row[3 * plane] = (int32_t)(c >> 16 | (d & 0xFFFF0000u));
}

/* One row of four planes: the pixels at `input`, none where that is NULL, between borders of zero points. */
UACCEL_KERNEL void uaccel_depthwise_rows_fill(const struct uaccel_depthwise_rows_dsp *p, const int8_t *input,
                                              int32_t *row)
{
    const uint32_t outside = (uint32_t)(p->input_zero_point & 0xFF) * 0x01010101u;
    const uaccel_index width = input != NULL ? p->in_width : 0;
    uaccel_index x = -p->pad_left;
    for (uaccel_index word = 0; word < p->pitch; ++word) {
        uint32_t first = outside, second = outside;
        if ((uint32_t)x < (uint32_t)width) {
            memcpy(&first, input + x * p->channels, 4);
        }
        if ((uint32_t)(x + 1) < (uint32_t)width) {
            memcpy(&second, input + (x + 1) * p->channels, 4);
        }
        uaccel_depthwise_rows_put(row + word, p->plane, first, second);
        x += 2;
    }
}

/* Four channels of `rows` output rows from row y on. */
UACCEL_KERNEL void uaccel_depthwise_rows_band(const struct uaccel_depthwise_rows_dsp *p, const int8_t *input,
                                              const int32_t *stream, int8_t *output, uaccel_index y,
                                              uaccel_index rows, int32_t *planes)
{
    const uaccel_index top = y * p->stride - p->pad_top;
    for (uaccel_index row = 0; row < (rows - 1) * p->stride + 3; ++row) {
        const bool inside = (uint32_t)(top + row) < (uint32_t)p->in_height;
        const int8_t *pixels = inside ? input + (top + row) * p->in_width * p->channels : NULL;
        uaccel_depthwise_rows_fill(p, pixels, planes + row * p->pitch);
    }
    const struct uaccel_dsp_rows_job job = {
        p->channels,  (p->out_width >> 1) * 4 * p->stride, rows,
        p->pitch * 4, p->pitch * 4 * p->stride,            p->out_width & 1,
    };
    output += y * p->out_width * p->channels;
    for (uaccel_index channel = 0; channel < 4; ++channel) {
        if (p->stride == 1) {
            (p->sign ? uaccel_dsp_rows_1_sign : uaccel_dsp_rows_1)(planes, stream, output + channel, &job);
        } else {
            (p->sign ? uaccel_dsp_rows_2_sign : uaccel_dsp_rows_2)(planes, stream, output + channel, &job);
        }
        planes += p->plane;
        stream += UACCEL_DEPTHWISE_ROWS_CHANNEL;
    }
}

/* scratch: four planes. */
UACCEL_KERNEL void uaccel_depthwise_rows_dsp_s8(const struct uaccel_depthwise_rows_dsp *p, const int8_t *input,
                                                const int32_t *stream, int8_t *output, void *scratch)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; y += p->band) {
            const uaccel_index rows = p->band < p->out_height - y ? p->band : p->out_height - y;
            for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                const uaccel_index at = channel + 4 > p->channels ? p->channels - 4 : channel;
                uaccel_depthwise_rows_band(p, input + at, stream + at * UACCEL_DEPTHWISE_ROWS_CHANNEL, output + at, y,
                                           rows, scratch);
            }
        }
        input += p->in_height * p->in_width * p->channels;
        output += p->out_height * p->out_width * p->channels;
    }
}

#endif
