/* Layers with weights of int16 activations for Arm's DSP extension: two products an instruction.
 *
 * Weights stay bytes: SXTB16 takes two of a word, for two neighbouring inputs, which lie in one word as they are. Biases
 * have 64 bits in a model; where the compiler finds that a sum with its bias fits 32 bits, sums have 32. */
#ifndef UACCEL_INT16_DSP_H
#define UACCEL_INT16_DSP_H

#include "uaccel_depthwise16.h"
#include "uaccel_dsp.h"

/* What a result is clamped to, in both halves. Of a channel the stream holds {multiplier, offset, shift}: a sum becomes
 * ((sum * multiplier >> 32) + offset) >> shift, where offset is half of 2^shift: it is rounded once. */
struct uaccel_int16_dsp_finish {
    int32_t clamp; /* 1: clamp to the bounds below; 0: to int16 alone */
    uint32_t lowest, highest;
};
UACCEL_AT(uaccel_int16_dsp_finish, clamp, 0);
UACCEL_AT(uaccel_int16_dsp_finish, lowest, 4);
UACCEL_AT(uaccel_int16_dsp_finish, highest, 8);

/* What uaccel_int16_dsp_2x4 works on; it counts in the last three. */
struct uaccel_int16_dsp_job {
    const uint32_t *patches; /* both pixels' inputs, two of the one and two of the other in turn */
    const uint32_t *end;
    const struct uaccel_int16_dsp_finish *finish;
    int16_t *first, *second; /* the pixels' results */
    uaccel_index quads;      /* how many times four channels: one at least */
};
UACCEL_AT4(uaccel_int16_dsp_job, 0, patches, end, finish, first);
UACCEL_AT(uaccel_int16_dsp_job, second, 16);
UACCEL_AT(uaccel_int16_dsp_job, quads, 20);

UACCEL_ASSEMBLY_BEGIN

/* Two pixels' output channels, by fours. stream, of each four: their biases; for each two inputs a word of channels 0
 * and 1 and one of 2 and 3, in which the bytes of the first channel are 0 and 2; and of each channel the constants of
 * its output stage. */
UACCEL_ASSEMBLY void uaccel_int16_dsp_2x4(struct uaccel_int16_dsp_job *job, const int32_t *stream)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_pair a, b, c, d\n"
            "ldr r12, [r1], #4\n"
            "sxtb16 lr, r12\n"
            "sxtb16 r12, r12, ror #8\n"
            "smlad \\a, r2, lr, \\a\n"
            "smlad \\b, r3, lr, \\b\n"
            "smlad \\c, r2, r12, \\c\n"
            "smlad \\d, r3, r12, \\d\n"
            ".endm\n"
            ".macro uaccel_step\n"
            "ldmia r0!, {r2, r3}\n"
            "uaccel_pair r4, r5, r6, r7\n"
            "uaccel_pair r8, r9, r10, r11\n"
            ".endm\n"
            ".macro uaccel_round a, b\n"
            "ldmia r1!, {r2, r3, r12}\n"
            "smmla \\a, \\a, r2, r3\n"
            "smmla \\b, \\b, r2, r3\n"
            "asr \\a, \\a, r12\n"
            "asr \\b, \\b, r12\n"
            "ssat \\a, #16, \\a\n"
            "ssat \\b, #16, \\b\n"
            ".endm\n"
            ".macro uaccel_clamp2 v\n"
            "ssub16 r12, \\v, r2\n"
            "sel \\v, \\v, r2\n"
            "ssub16 r12, r3, \\v\n"
            "sel \\v, \\v, r3\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "ldmia r0, {r2, r3, r12}\n"
            "sub lr, r3, r2\n"
            "and lr, lr, #63\n"
            "sub lr, r3, lr\n" /* where whole rounds of eight steps end */
            "push {r0, r2, r3, r12, lr}\n"
            "1: ldr r0, [sp, #4]\n"
            "ldmia r1!, {r4, r6, r8, r10}\n"
            "mov r5, r4\n"
            "mov r7, r6\n"
            "mov r9, r8\n"
            "mov r11, r10\n"
            "ldr r12, [sp, #16]\n"
            "b 3f\n"
            "2: .rept 8\n"
            "uaccel_step\n"
            ".endr\n"
            "ldr r12, [sp, #16]\n"
            "3: cmp r0, r12\n"
            "bne 2b\n"
            "ldr r12, [sp, #8]\n"
            "b 5f\n"
            "4: uaccel_step\n"
            "ldr r12, [sp, #8]\n"
            "5: cmp r0, r12\n"
            "bne 4b\n"
            "uaccel_round r4, r5\n"
            "uaccel_round r6, r7\n"
            "uaccel_round r8, r9\n"
            "uaccel_round r10, r11\n"
            "pkhbt r4, r4, r6, lsl #16\n"
            "pkhbt r5, r5, r7, lsl #16\n"
            "pkhbt r8, r8, r10, lsl #16\n"
            "pkhbt r9, r9, r11, lsl #16\n"
            "ldr r0, [sp, #12]\n"
            "ldr r2, [r0]\n"
            "cmp r2, #0\n"
            "beq 6f\n"
            "ldrd r2, r3, [r0, #4]\n"
            "uaccel_clamp2 r4\n"
            "uaccel_clamp2 r5\n"
            "uaccel_clamp2 r8\n"
            "uaccel_clamp2 r9\n"
            "6: ldr r0, [sp]\n"
            "ldrd r2, r3, [r0, #12]\n"
            "str r4, [r2], #4\n"
            "str r8, [r2], #4\n"
            "str r5, [r3], #4\n"
            "str r9, [r3], #4\n"
            "strd r2, r3, [r0, #12]\n"
            "ldr r2, [r0, #20]\n"
            "subs r2, #1\n"
            "str r2, [r0, #20]\n"
            "bne 1b\n"
            "add sp, #20\n"
            "pop {r4-r11, pc}\n"
            UACCEL_PURGE("uaccel_pair, uaccel_step, uaccel_round, uaccel_clamp2"));
}

/* The sums of four or two units of a row: where the stream goes on behind their weights. */
#define UACCEL_INT16_DSP_UNITS(biases, weights, pair)                                                                 \
    __asm__(".syntax unified\n"                                                                                       \
            ".macro uaccel_pair a, b, w\n"                                                                            \
            "sxtb16 r11, \\w\n"                                                                                       \
            "sxtb16 \\w, \\w, ror #8\n"                                                                               \
            "smlad \\a, r8, r11, \\a\n"                                                                               \
            "smlad \\b, r8, \\w, \\b\n"                                                                               \
            ".endm\n"                                                                                                 \
            "push {r4-r11, lr}\n"                                                                                     \
            "ldmia r2!, " biases "\n"                                                                                 \
            "sub lr, r1, r0\n"                                                                                        \
            "and lr, lr, #31\n"                                                                                       \
            "sub lr, r1, lr\n" /* where whole rounds of eight pairs of inputs end */                                  \
            "b 2f\n"                                                                                                  \
            "1: .rept 8\n"                                                                                            \
            "ldr r8, [r0], #4\n" weights pair                                                                         \
            ".endr\n"                                                                                                 \
            "2: cmp r0, lr\n"                                                                                         \
            "bne 1b\n"                                                                                                \
            "b 4f\n"                                                                                                  \
            "3: ldr r8, [r0], #4\n" weights pair                                                                      \
            "4: cmp r0, r1\n"                                                                                         \
            "bne 3b\n"                                                                                                \
            "stmia r3, " biases "\n"                                                                                  \
            "mov r0, r2\n"                                                                                            \
            "pop {r4-r11, pc}\n"                                                                                      \
            ".purgem uaccel_pair\n")

UACCEL_ASSEMBLY const int32_t *uaccel_int16_dsp_1x4(const int16_t *input, const int16_t *end, const int32_t *stream,
                                                    int32_t *sums)
{
    UACCEL_INT16_DSP_UNITS("{r4-r7}", "ldmia r2!, {r9, r10}\n", "uaccel_pair r4, r5, r9\nuaccel_pair r6, r7, r10\n");
}

UACCEL_ASSEMBLY const int32_t *uaccel_int16_dsp_1x2(const int16_t *input, const int16_t *end, const int32_t *stream,
                                                    int32_t *sums)
{
    UACCEL_INT16_DSP_UNITS("{r4, r5}", "ldr r9, [r2], #4\n", "uaccel_pair r4, r5, r9\n");
}

#undef UACCEL_INT16_DSP_UNITS
UACCEL_ASSEMBLY_END

/* Two elements; a compiler may know that they lie at an even address. */
UACCEL_KERNEL uint32_t uaccel_int16_dsp_load(const int16_t *place)
{
    uint32_t word;
    memcpy(&word, place, 4);
    return word;
}

/* The result of a sum, by the three constants of its channel. */
UACCEL_KERNEL int16_t uaccel_int16_dsp_result(int32_t sum, const int32_t *constants, int32_t clamp_min,
                                              int32_t clamp_max)
{
    __asm__("smmla %0, %0, %1, %2" : "+r"(sum) : "r"(constants[0]), "r"(constants[1]));
    sum = (int32_t)__builtin_arm_ssat(sum >> constants[2], 16);
    return (int16_t)uaccel_dsp_bounded(sum, clamp_min, clamp_max, INT16_MIN, INT16_MAX);
}

/* A fully connected layer of one row. The stream is that of uaccel_int16_dsp_2x4, but of one or two units at the end: it
 * has one word for each two inputs, and the second of two units may be zeros. */
struct uaccel_fully_connected_dsp16 {
    uaccel_index depth, units;
    uaccel_index length; /* of the row, in whole pairs */
    int32_t clamp_min, clamp_max;
};

/* Twice as many units as `words`, of which `wanted` are stored; where the stream goes on. */
UACCEL_KERNEL const int32_t *uaccel_int16_dsp_units(const struct uaccel_fully_connected_dsp16 *p, const int16_t *input,
                                                    const int32_t *stream, uaccel_index words, uaccel_index wanted,
                                                    int16_t *output)
{
    const int16_t *end = input + p->length;
    int32_t sums[4];
    stream = words == 2 ? uaccel_int16_dsp_1x4(input, end, stream, sums)
                        : uaccel_int16_dsp_1x2(input, end, stream, sums);
    for (uaccel_index i = 0; i < wanted; ++i) {
        output[i] = uaccel_int16_dsp_result(sums[i], stream + 3 * i, p->clamp_min, p->clamp_max);
    }
    return stream + 6 * words;
}

/* scratch: the row in whole pairs, unless it is. */
UACCEL_SHARED void uaccel_fully_connected_dsp_s16(const struct uaccel_fully_connected_dsp16 *p, const int16_t *input,
                                                  const int32_t *stream, int16_t *output, void *scratch)
{
    uaccel_index left = p->units;
    if (p->length > p->depth) { /* what follows the row has weights of zero */
        memcpy(scratch, input, (size_t)p->depth * sizeof(int16_t));
        input = scratch;
    }
    for (; left > 2; left -= 4) {
        stream = uaccel_int16_dsp_units(p, input, stream, 2, left < 4 ? left : 4, output);
        output += 4;
    }
    if (left > 0) {
        uaccel_int16_dsp_units(p, input, stream, 1, left, output);
    }
}

/* Convolution of one group, whose channels may be some of a pixel's. Of each window the pixels of a row are a run of
 * halves, with one more behind it where their number is odd; its weights there are zero. */
struct uaccel_conv2d_dsp16 {
    struct uaccel_geometry geo;
    uaccel_index out_pixel, out_row, in_pixel; /* elements from one to the next */
    uaccel_index runs; /* elements that are read of a window's row, by twos, and up to its last pixel's end; 0: apart */
    uaccel_index quad_words;         /* words of the stream for four output channels */
    struct uaccel_int16_dsp_finish finish;
};

/* The window of one output pixel: where it lies, if that is all inside, else a copy with zeros around it. `step` tells
 * how far its rows are apart. */
UACCEL_SHARED const int16_t *uaccel_conv2d_dsp16_window(const struct uaccel_conv2d_dsp16 *p, const int16_t *input,
                                                        uaccel_index pixel, int16_t *copy, uaccel_index *step)
{
    const uaccel_index top = pixel / p->geo.out_width * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = pixel % p->geo.out_width * p->geo.stride_width - p->geo.pad_left;
    const uaccel_index bottom = top + (p->geo.kernel_height - 1) * p->geo.dilation_height;
    const uaccel_index row = p->geo.in_width * p->in_pixel, length = p->geo.kernel_width * p->geo.in_channels;
    const uaccel_index run = (length + 1) & ~1;
    if (p->runs > 0 && top >= 0 && left >= 0 && bottom < p->geo.in_height &&
        left + p->geo.kernel_width <= p->geo.in_width &&
        bottom * row + left * p->in_pixel + p->runs <= p->geo.in_height * row) {
        *step = p->geo.dilation_height * row;
        return input + top * row + left * p->in_pixel;
    }
    *step = run;
    memset(copy, 0, (size_t)(run * p->geo.kernel_height) * sizeof(int16_t));
    const uaccel_index first = left < 0 ? -left : 0;
    const uaccel_index last =
        left + p->geo.kernel_width > p->geo.in_width ? p->geo.in_width - left : p->geo.kernel_width;
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        int16_t *const target = copy + ky * run;
        if (y < 0 || y >= p->geo.in_height) {
            continue;
        }
        const int16_t *const source = input + y * row;
        if (p->runs > 0 && first < last) {
            memcpy(target + first * p->geo.in_channels, source + (left + first) * p->in_pixel,
                   (size_t)((last - first) * p->geo.in_channels) * sizeof(int16_t));
        }
        for (uaccel_index kx = p->runs > 0 ? p->geo.kernel_width : 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            if (x >= 0 && x < p->geo.in_width) {
                memcpy(target + kx * p->geo.in_channels, source + x * p->in_pixel,
                       (size_t)p->geo.in_channels * sizeof(int16_t));
            }
        }
    }
    return copy;
}

/* Both windows, two inputs of the one and two of the other in turn; where they end. copies: of both windows. */
UACCEL_SHARED const uint32_t *uaccel_conv2d_dsp16_patches(const struct uaccel_conv2d_dsp16 *p, const int16_t *input,
                                                          uaccel_index first, uaccel_index second, uint32_t *patches)
{
    const uaccel_index words = (p->geo.kernel_width * p->geo.in_channels + 1) >> 1;
    int16_t *copies = (int16_t *)(patches + 2 * words * p->geo.kernel_height);
    uaccel_index step1, step2;
    const int16_t *a = uaccel_conv2d_dsp16_window(p, input, first, copies, &step1);
    const int16_t *b =
        uaccel_conv2d_dsp16_window(p, input, second, copies + 2 * words * p->geo.kernel_height, &step2);
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        for (uaccel_index i = 0; i < words; ++i) {
            *patches++ = uaccel_int16_dsp_load(a + 2 * i);
            *patches++ = uaccel_int16_dsp_load(b + 2 * i);
        }
        a += step1;
        b += step2;
    }
    return patches;
}

/* Where the results of the next pixel go. */
UACCEL_KERNEL int16_t *uaccel_conv2d_dsp16_next(const struct uaccel_conv2d_dsp16 *p, int16_t *output,
                                                uaccel_index *column)
{
    output += p->out_pixel;
    if (++*column == p->geo.out_width) {
        *column = 0;
        output += p->out_row - p->geo.out_width * p->out_pixel;
    }
    return output;
}

/* scratch: both windows twice, filled up. */
UACCEL_SHARED void uaccel_conv2d_dsp_s16(const struct uaccel_conv2d_dsp16 *p, const int16_t *input,
                                         const int32_t *stream, int16_t *output, void *scratch)
{
    const uaccel_index pixels = p->geo.out_height * p->geo.out_width, rest = p->geo.out_channels & 3;
    uaccel_index column = 0;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            /* the second one of a last pair may be the first again */
            const uaccel_index more = pixel + 1 < pixels ? 1 : 0;
            int16_t *const first = output, last[8];
            if (more > 0) {
                output = uaccel_conv2d_dsp16_next(p, output, &column);
            }
            int16_t *const second = output;
            struct uaccel_int16_dsp_job job = {scratch, NULL, &p->finish, first, second, p->geo.out_channels >> 2};
            job.end = uaccel_conv2d_dsp16_patches(p, input, pixel, pixel + more, scratch);
            if (job.quads > 0) {
                uaccel_int16_dsp_2x4(&job, stream);
            }
            if (rest > 0) {
                const uaccel_index done = p->geo.out_channels - rest;
                job.first = last;
                job.second = last + 4;
                job.quads = 1;
                uaccel_int16_dsp_2x4(&job, stream + (done >> 2) * p->quad_words);
                memcpy(first + done, last, (size_t)rest * sizeof(int16_t));
                memcpy(second + done, last + 4, (size_t)rest * sizeof(int16_t));
            }
            output = uaccel_conv2d_dsp16_next(p, output, &column);
        }
        input += p->geo.in_height * p->geo.in_width * p->in_pixel;
    }
}

/* Four channels under one window of a depthwise convolution. stream: their biases, of each tap a word, whose bytes 0 and
 * 2 are the weights of the first two, and of each channel the constants of its output stage. */
UACCEL_KERNEL void uaccel_depthwise_conv2d_dsp16_quad(const struct uaccel_depthwise16 *p,
                                                      const struct uaccel_depthwise16_taps *taps, uaccel_index channel,
                                                      const int32_t *stream, int16_t *output)
{
    const int32_t *constants = stream + 4 + p->geo.kernel_height * p->geo.kernel_width;
    const int32_t *weights = stream + 4 + taps->first;
    const int16_t *row = taps->pixels + channel / p->multiplier;
    const uaccel_index rest = channel % p->multiplier;
    const uaccel_index one = (rest + 1) / p->multiplier, two = (rest + 2) / p->multiplier;
    const uaccel_index three = (rest + 3) / p->multiplier;
    int32_t a = stream[0], b = stream[1], c = stream[2], d = stream[3];
    for (uaccel_index ky = taps->height; ky > 0; --ky) {
        const int16_t *pixel = row;
        for (uaccel_index kx = 0; kx < taps->width; ++kx) {
            const uint32_t word = (uint32_t)weights[kx];
            const uint32_t first = uaccel_dsp_even(word), second = uaccel_dsp_odd(word);
            if (p->multiplier == 1) {
                const uint32_t x = uaccel_int16_dsp_load(pixel), y = uaccel_int16_dsp_load(pixel + 2);
                a += (int16_t)x * (int16_t)first;
                b += ((int32_t)x >> 16) * ((int32_t)first >> 16);
                c += (int16_t)y * (int16_t)second;
                d += ((int32_t)y >> 16) * ((int32_t)second >> 16);
            } else { /* of a multiple of four, one for all */
                const bool all = p->multiplier % 4 == 0;
                a += pixel[0] * (int16_t)first;
                b += pixel[all ? 0 : one] * ((int32_t)first >> 16);
                c += pixel[all ? 0 : two] * (int16_t)second;
                d += pixel[all ? 0 : three] * ((int32_t)second >> 16);
            }
            pixel += p->geo.dilation_width * p->geo.in_channels;
        }
        weights += p->geo.kernel_width;
        row += p->geo.dilation_height * p->geo.in_width * p->geo.in_channels;
    }
    output[0] = uaccel_int16_dsp_result(a, constants, p->clamp_min, p->clamp_max);
    output[1] = uaccel_int16_dsp_result(b, constants + 3, p->clamp_min, p->clamp_max);
    output[2] = uaccel_int16_dsp_result(c, constants + 6, p->clamp_min, p->clamp_max);
    output[3] = uaccel_int16_dsp_result(d, constants + 9, p->clamp_min, p->clamp_max);
}

/* By fours, the last ones over again where the channels are no multiple of four. */
UACCEL_KERNEL void uaccel_depthwise_conv2d_dsp16_window(const struct uaccel_depthwise16 *p,
                                                        const struct uaccel_depthwise16_taps *taps,
                                                        const int32_t *stream, int16_t *output)
{
    const uaccel_index words = 16 + p->geo.kernel_height * p->geo.kernel_width;
    for (uaccel_index c = 0; c < p->geo.out_channels; c += 4) {
        const uaccel_index at = c + 4 <= p->geo.out_channels ? c : p->geo.out_channels - 4;
        uaccel_depthwise_conv2d_dsp16_quad(p, taps, at, stream, output + at);
        stream += words;
    }
}

UACCEL_DEPTHWISE16(uaccel_depthwise_conv2d_dsp_s16, uaccel_depthwise_conv2d_dsp16_window)

#endif
