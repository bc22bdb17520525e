/* Depthwise convolution with 3x3 windows for Arm's DSP extension: int8, strides of 1 or 2 both ways, one output
 * channel an input channel, four or more.
 *
 * Four channels at a time become planes of halves of words, borders and all, and then each plane is convolved two
 * output pixels at a time. A plane's rows may be the image's columns. Where a plane holds all rows, the output may take
 * the input's place. */
#ifndef UACCEL_DEPTHWISE_ROWS_DSP_H
#define UACCEL_DEPTHWISE_ROWS_DSP_H

#include "uaccel_dsp.h"

/* Heights, rows and tops are those of planes. */
struct uaccel_depthwise_rows_dsp {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width, stride;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index row, pixel, out_row, out_pixel; /* bytes from one to the next */
    uaccel_index band;                           /* output rows that a plane serves */
    uaccel_index pitch;                          /* words of a plane's row */
    uaccel_index plane;                          /* words of a plane */
    int32_t sign;                                /* as in struct uaccel_dsp_finish */
    int32_t offset;                              /* 2 zero point + 1 */
};

enum { UACCEL_DEPTHWISE_ROWS_CHANNEL = 5 }; /* words of the stream for a channel */

/* What uaccel_dsp_rows works on. */
struct uaccel_dsp_rows_job {
    uaccel_index pixel; /* bytes from an output pixel to the next */
    uaccel_index pairs; /* bytes that an output row's pairs of pixels advance by */
    uaccel_index rows;  /* output rows, one at least */
    uaccel_index pitch; /* bytes of a plane's row */
    uaccel_index step;  /* bytes from an output row's windows to the next */
    int32_t odd;        /* 1: a pixel remains behind the pairs */
    uaccel_index over;  /* bytes from an output row's end to the next */
    int32_t offset;     /* times 2^shift and halved it is that of the output stage */
};
UACCEL_AT4(uaccel_dsp_rows_job, 0, pixel, pairs, rows, pitch);
UACCEL_AT4(uaccel_dsp_rows_job, 16, step, odd, over, offset);

typedef void uaccel_dsp_rows(const int32_t *plane, const int32_t *stream, int8_t *output,
                             const struct uaccel_dsp_rows_job *job);

UACCEL_ASSEMBLY_BEGIN

/* One channel. stream: twice its sum at the start; multiplier; of each row of weights their bytes, and behind the
 * first the shift. They become the halves (0, 1) and (1, 2) of words, twice their value. In single precision, which is
 * way 2, the multiplier is half the scale, and in place of the shift are the 128ths that are added to the sum. */
#define UACCEL_DSP_ROWS(name, way, stride)                                                                           \
    UACCEL_ASSEMBLY void name(const int32_t *plane, const int32_t *stream, int8_t *output,                           \
                              const struct uaccel_dsp_rows_job *job)                                                 \
    {                                                                                                                \
        __asm__(".syntax unified\n" UACCEL_DSP_SLOTS                                                                 \
                ".macro uaccel_row p, u, v, both, start\n"                                                           \
                ".if \\both\n"                                                                                       \
                "ldrd r12, lr, [\\p], #4 * " #stride "\n"                                                            \
                ".else\n"                                                                                            \
                "ldrd r12, lr, [\\p]\n"                                                                              \
                ".endif\n"                                                                                           \
                ".if \\both && " #stride " == 1\n"                                                                   \
                "smlatb r11, r12, \\u, \\start\n"                                                                    \
                "smlad r11, lr, \\v, r11\n"                                                                          \
                ".endif\n"                                                                                           \
                "smlad r10, r12, \\u, r10\n"                                                                         \
                "smlabt r10, lr, \\v, r10\n"                                                                         \
                ".if \\both && " #stride " == 2\n"                                                                   \
                "ldr r12, [\\p]\n"                                                                                   \
                "smlad r11, lr, \\u, \\start\n"                                                                      \
                "smlabt r11, r12, \\v, r11\n"                                                                        \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                ".macro uaccel_weights u, v\n"                                                                       \
                "sxtb16 \\v, \\u, ror #8\n"                                                                          \
                "sxtb16 lr, \\u\n"                                                                                   \
                "sadd16 \\v, \\v, \\v\n"                                                                             \
                "sadd16 lr, lr, lr\n"                                                                                \
                "pkhbt \\u, lr, \\v, lsl #16\n"                                                                      \
                "pkhbt \\v, \\v, lr\n"                                                                               \
                ".endm\n"                                                                                            \
                ".macro uaccel_round a, last\n" /* the last one may take lr */                                       \
                ".if " #way " && \\last\n"                                                                           \
                "add lr, lr, \\a, asr #31\n"                                                                         \
                "smmlar \\a, \\a, r12, lr\n"                                                                         \
                ".elseif " #way "\n"                                                                                 \
                "smmulr \\a, \\a, r12\n"                                                                             \
                "add \\a, \\a, \\a, asr #31\n"                                                                       \
                "add \\a, \\a, lr\n"                                                                                 \
                ".else\n"                                                                                            \
                "smmlar \\a, \\a, r12, lr\n"                                                                         \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                ".macro uaccel_single\n" /* the slots 4 to 7 are s4 to s7 */                                         \
                "vmov s0, s1, r10, r11\n"                                                                            \
                "vcvt.f32.s32 s0, s0\n"                                                                              \
                "vcvt.f32.s32 s1, s1\n"                                                                              \
                "vadd.f32 s0, s0, s7\n"                                                                              \
                "vadd.f32 s1, s1, s7\n"                                                                              \
                "vmul.f32 s0, s0, s5\n"                                                                              \
                "vmul.f32 s1, s1, s5\n"                                                                              \
                "vcvtr.s32.f32 s0, s0\n"                                                                             \
                "vcvtr.s32.f32 s1, s1\n"                                                                             \
                "vmov r10, r11, s0, s1\n"                                                                            \
                "uaccel_recall lr, 6\n"                                                                             \
                "qadd r10, r10, lr\n"                                                                                \
                "qadd r11, r11, lr\n"                                                                                \
                ".endm\n"                                                                                            \
                ".macro uaccel_pixels both\n"                                                                        \
                "uaccel_recall r10, 4\n"                                                                             \
                ".if \\both && " #stride " == 2\n"                                                                   \
                "mov r11, r10\n"                                                                                     \
                "uaccel_row r0, r4, r5, \\both, r11\n"                                                               \
                ".else\n"                                                                                            \
                "uaccel_row r0, r4, r5, \\both, r10\n"                                                               \
                ".endif\n"                                                                                           \
                "uaccel_row r1, r6, r7, \\both, r11\n"                                                               \
                "uaccel_row r2, r8, r9, \\both, r11\n"                                                               \
                ".if " #way " == 2\n"                                                                                \
                "uaccel_single\n"                                                                                    \
                ".else\n"                                                                                            \
                "uaccel_recall r12, 5\n"                                                                             \
                "uaccel_recall lr, 6\n"                                                                              \
                "uaccel_round r10, !\\both\n"                                                                        \
                ".if \\both\n"                                                                                       \
                "uaccel_round r11, 1\n"                                                                              \
                ".endif\n"                                                                                           \
                "uaccel_recall r12, 7\n"                                                                             \
                "asr r10, r10, r12\n"                                                                                \
                ".if \\both\n"                                                                                       \
                "asr r11, r11, r12\n"                                                                                \
                ".endif\n"                                                                                           \
                ".endif\n"                                                                                           \
                "uaccel_recall lr, 8\n"                                                                              \
                "ssat r10, #8, r10\n"                                                                                \
                "strb r10, [r3]\n"                                                                                   \
                ".if \\both\n"                                                                                       \
                "ssat r11, #8, r11\n"                                                                                \
                "strb r11, [r3, lr]\n"                                                                               \
                "add r3, r3, lr, lsl #1\n"                                                                           \
                ".else\n"                                                                                            \
                "add r3, r3, lr\n"                                                                                   \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                "push {r4-r11, lr}\n"                                                                                \
                "uaccel_frame\n"                                                                                     \
                "ldmia r3, {r3-r8, r12, lr}\n" /* pixel, pairs, rows, pitch, step, odd, over, offset */              \
                "ldmia r1!, {r9, r10}\n" /* sum, multiplier */                                                       \
                "uaccel_keep r9, 4\n"                                                                                \
                "uaccel_keep r10, 5\n"                                                                               \
                "uaccel_keep r3, 8\n"                                                                                \
                "uaccel_keep r5, 10\n"                                                                               \
                "uaccel_keep r7, 12\n"                                                                               \
                "uaccel_keep r8, 13\n"                                                                               \
                "uaccel_keep r12, 14\n"                                                                              \
                "mov r3, r2\n"                                                                                       \
                "add r5, r0, r4\n"                                                                                   \
                "uaccel_keep r5, 9\n" /* where the row's pairs end */                                                \
                "sub r7, r7, r4\n"                                                                                   \
                "uaccel_keep r7, 11\n" /* from there to the next row */                                              \
                "add r12, r0, r6\n"                                                                                  \
                "add r2, r12, r6\n"                                                                                  \
                "ldmia r1, {r4, r6, r8}\n"                                                                           \
                "mov r1, r12\n"                                                                                      \
                "asr r12, r4, #24\n"                                                                                 \
                "uaccel_keep r12, 7\n" /* shift, or the rest */                                                      \
                ".if " #way " == 2\n"                                                                                \
                "vcvt.f32.s32 s7, s7, #6\n"                                                                          \
                ".else\n"                                                                                            \
                "lsl lr, lr, r12\n"                                                                                  \
                ".endif\n"                                                                                           \
                "asr lr, lr, #1\n"                                                                                   \
                "uaccel_keep lr, 6\n" /* offset */                                                                   \
                "uaccel_weights r4, r5\n"                                                                            \
                "uaccel_weights r6, r7\n"                                                                            \
                "uaccel_weights r8, r9\n"                                                                            \
                "uaccel_recall r12, 9\n"                                                                             \
                "1: cmp r0, r12\n"                                                                                   \
                "beq 3f\n"                                                                                           \
                "2: uaccel_pixels 1\n"                                                                               \
                "uaccel_recall r12, 9\n"                                                                             \
                "cmp r0, r12\n"                                                                                      \
                "bne 2b\n"                                                                                           \
                "3: uaccel_recall r12, 13\n"                                                                         \
                "cmp r12, #0\n"                                                                                      \
                "beq 4f\n"                                                                                           \
                "uaccel_pixels 0\n"                                                                                  \
                "4: uaccel_recall r12, 11\n"                                                                         \
                "add r0, r12\n"                                                                                      \
                "add r1, r12\n"                                                                                      \
                "add r2, r12\n"                                                                                      \
                "uaccel_recall r12, 14\n"                                                                            \
                "add r3, r12\n"                                                                                      \
                "uaccel_recall r12, 9\n"                                                                             \
                "uaccel_recall lr, 12\n"                                                                             \
                "add r12, lr\n"                                                                                      \
                "uaccel_keep r12, 9\n"                                                                               \
                "uaccel_recall lr, 10\n"                                                                             \
                "subs lr, #1\n"                                                                                      \
                "uaccel_keep lr, 10\n"                                                                               \
                "bne 1b\n"                                                                                           \
                "uaccel_leave\n"                                                                                     \
                UACCEL_PURGE("uaccel_row, uaccel_weights, uaccel_round, uaccel_single, uaccel_pixels") UACCEL_DSP_END_SLOTS);\
    }

UACCEL_DSP_ROWS(uaccel_dsp_rows_1, 0, 1)
UACCEL_DSP_ROWS(uaccel_dsp_rows_1_sign, 1, 1)
UACCEL_DSP_ROWS(uaccel_dsp_rows_2, 0, 2)
UACCEL_DSP_ROWS(uaccel_dsp_rows_2_sign, 1, 2)
#if defined(__ARM_FP) && (__ARM_FP & 4)
UACCEL_DSP_ROWS(uaccel_dsp_rows_1_float32, 2, 1)
UACCEL_DSP_ROWS(uaccel_dsp_rows_2_float32, 2, 2)
#endif

/* What uaccel_dsp_planes works on, where rows of a plane are: a word whose first pixel is outside, words of two pixels,
 * a word whose second pixel is outside, words outside. */
struct uaccel_dsp_planes_job {
    uaccel_index plane; /* bytes from one to the next */
    uaccel_index pixel; /* bytes from one to the next, as is row */
    uint32_t outside;   /* four channels of zero points */
    uaccel_index left, words, right, outs;
    uaccel_index pitch; /* words of a row */
    uaccel_index row;
    uaccel_index height;     /* rows that there are */
    uaccel_index y, rows;    /* the first row, and how many */
    uaccel_index unused[2]; /* of the slots */
};
UACCEL_AT4(uaccel_dsp_planes_job, 0, plane, pixel, outside, left);
UACCEL_AT4(uaccel_dsp_planes_job, 16, words, right, outs, pitch);
UACCEL_AT4(uaccel_dsp_planes_job, 32, row, height, y, rows);
UACCEL_AT(uaccel_dsp_planes_job, unused, 48);

/* Four planes of halves of words from four channels of an image. */
UACCEL_ASSEMBLY void uaccel_dsp_planes(int32_t *planes, const int8_t *input, const struct uaccel_dsp_planes_job *job)
{
    __asm__(".syntax unified\n" UACCEL_DSP_SLOTS
            ".macro uaccel_put\n"
            "sxtb16 r9, r7\n"
            "sxtb16 r10, r8\n"
            "sxtb16 r7, r7, ror #8\n"
            "sxtb16 r8, r8, ror #8\n"
            "pkhbt r11, r9, r10, lsl #16\n"
            "pkhbt r12, r7, r8, lsl #16\n"
            "pkhtb r9, r10, r9, asr #16\n"
            "pkhtb r7, r8, r7, asr #16\n"
            "str r11, [r0], #4\n"
            "str r12, [r4], #4\n"
            "str r9, [r5], #4\n"
            "str r7, [r6], #4\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "mov r9, r2\n"
            "add r12, r2, #12\n"
            "uaccel_slots\n"
            "ldmia r9, {r3, r7, r8}\n"
            "add r4, r0, r3\n"
            "add r5, r4, r3\n"
            "add r6, r5, r3\n"
            "mov r3, r7\n"
            "mov r2, r8\n"
            "1: uaccel_recall r7, 11\n"
            "uaccel_recall r8, 10\n"
            "uaccel_recall lr, 8\n"
            "cmp r7, r8\n"
            "bhs 5f\n"
            "uaccel_recall r8, 9\n"
            "uaccel_recall r1, 15\n"
            "mla r1, r7, r8, r1\n"
            "uaccel_recall lr, 4\n"
            "cmp lr, #0\n"
            "beq 2f\n"
            "mov r7, r2\n"
            "ldr r8, [r1]\n"
            "add r1, r3\n"
            "uaccel_put\n"
            "2: uaccel_recall lr, 5\n"
            "cmp lr, #0\n"
            "beq 4f\n"
            "3: ldr r7, [r1]\n"
            "ldr r8, [r1, r3]\n"
            "add r1, r1, r3, lsl #1\n"
            "uaccel_put\n"
            "subs lr, #1\n"
            "bne 3b\n"
            "4: uaccel_recall lr, 6\n"
            "cmp lr, #0\n"
            "uaccel_recall lr, 7\n"
            "beq 5f\n"
            "ldr r7, [r1]\n"
            "mov r8, r2\n"
            "uaccel_put\n"
            "5: cmp lr, #0\n"
            "beq 7f\n"
            "sxtb16 r7, r2\n"
            "6: str r7, [r0], #4\n"
            "str r7, [r4], #4\n"
            "str r7, [r5], #4\n"
            "str r7, [r6], #4\n"
            "subs lr, #1\n"
            "bne 6b\n"
            "7: uaccel_recall r7, 11\n"
            "add r7, #1\n"
            "uaccel_keep r7, 11\n"
            "uaccel_recall lr, 12\n"
            "subs lr, #1\n"
            "uaccel_keep lr, 12\n"
            "bne 1b\n"
            "uaccel_leave\n"
            ".purgem uaccel_put\n" UACCEL_DSP_END_SLOTS);
}
UACCEL_ASSEMBLY_END

/* Four channels of `rows` output rows from row y on. */
UACCEL_KERNEL void uaccel_depthwise_rows_band(const struct uaccel_depthwise_rows_dsp *p, const int8_t *input,
                                              const int32_t *stream, int8_t *output, uaccel_index y,
                                              uaccel_index rows, int32_t *planes, uaccel_dsp_rows *convolve)
{
    const uaccel_index room = p->pitch - p->pad_left, pixels = p->in_width - p->pad_left;
    const uaccel_index words = pixels >> 1 < room ? pixels >> 1 : room;
    const uaccel_index right = words < room ? pixels & 1 : 0;
    const struct uaccel_dsp_planes_job image = {
        p->plane * 4,
        p->pixel,
        (uint32_t)(p->input_zero_point & 0xFF) * 0x01010101u,
        p->pad_left,
        words,
        right,
        room - words - right,
        p->pitch,
        p->row,
        p->in_height,
        y * p->stride - p->pad_top,
        (rows - 1) * p->stride + 3,
        {0, 0},
    };
    uaccel_dsp_planes(planes, input, &image);
    const struct uaccel_dsp_rows_job job = {
        p->out_pixel,
        (p->out_width >> 1) * 4 * p->stride,
        rows,
        p->pitch * 4,
        p->pitch * 4 * p->stride,
        p->out_width & 1,
        p->out_row - p->out_width * p->out_pixel,
        p->offset,
    };
    for (uaccel_index channel = 0; channel < 4; ++channel) {
        convolve(planes, stream, output + y * p->out_row + channel, &job);
        planes += p->plane;
        stream += UACCEL_DEPTHWISE_ROWS_CHANNEL;
    }
}

UACCEL_SHARED void uaccel_depthwise_rows_images(const struct uaccel_depthwise_rows_dsp *p, const int8_t *input,
                                                const int32_t *stream, int8_t *output, int32_t *planes,
                                                uaccel_dsp_rows *convolve)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; y += p->band) {
            const uaccel_index rows = p->band < p->out_height - y ? p->band : p->out_height - y;
            for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                const uaccel_index at = channel + 4 > p->channels ? p->channels - 4 : channel;
                uaccel_depthwise_rows_band(p, input + at, stream + at * UACCEL_DEPTHWISE_ROWS_CHANNEL, output + at, y,
                                           rows, planes, convolve);
            }
        }
        input += p->in_height * p->in_width * p->channels;
        output += p->out_height * p->out_width * p->channels;
    }
}

/* scratch: four planes. */
UACCEL_KERNEL void uaccel_depthwise_rows_dsp_s8(const struct uaccel_depthwise_rows_dsp *p, const int8_t *input,
                                                const int32_t *stream, int8_t *output, void *scratch)
{
    uaccel_dsp_rows *const once = p->sign ? uaccel_dsp_rows_1_sign : uaccel_dsp_rows_1;
    uaccel_dsp_rows *const twice = p->sign ? uaccel_dsp_rows_2_sign : uaccel_dsp_rows_2;
    uaccel_depthwise_rows_images(p, input, stream, output, scratch, p->stride == 1 ? once : twice);
}

#if defined(__ARM_FP) && (__ARM_FP & 4)
/* The same in single precision. */
UACCEL_KERNEL void uaccel_depthwise_rows_dsp_s8_float32(const struct uaccel_depthwise_rows_dsp *p, const int8_t *input,
                                                        const int32_t *stream, int8_t *output, void *scratch)
{
    uaccel_dsp_rows *const convolve = p->stride == 1 ? uaccel_dsp_rows_1_float32 : uaccel_dsp_rows_2_float32;
    uaccel_depthwise_rows_images(p, input, stream, output, scratch, convolve);
}
#endif

#endif
