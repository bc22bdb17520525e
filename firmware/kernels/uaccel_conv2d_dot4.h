/* Convolution, pointwise convolution and fully connected layers for RISC-V cores with a custom instruction: R-type on
 * CUSTOM_0, function 0, the sum of the products of four signed bytes each. Two pixels and four channels at a time.
 *
 * Weights: of each four channels and each four inputs a word for each of the channels, filled up with zeros. */
#ifndef UACCEL_CONV2D_DOT4_H
#define UACCEL_CONV2D_DOT4_H

#include <string.h>

#include "uaccel_conv2d_blocked.h"

#if !defined(__riscv_xlen) || __riscv_xlen != 32
#error "this model was compiled for RV32 with an instruction of four products; compile it again with --board and your board"
#endif

struct uaccel_conv2d_dot4 {
    struct uaccel_conv2d_blocked windows;
};

struct uaccel_rows_dot4 {
    uaccel_index rows, depth, out_channels;
    struct uaccel_blocked_finish finish;
};

UACCEL_KERNEL int32_t uaccel_dot4(int32_t a, int32_t b)
{
    int32_t sum;
    __asm(".insn r 0x0B, 0, 0, %0, %1, %2" : "=r"(sum) : "r"(a), "r"(b));
    return sum;
}

UACCEL_KERNEL int32_t uaccel_dot4_word(const int8_t *at)
{
    int32_t word;
    memcpy(&word, __builtin_assume_aligned(at, 4), sizeof word);
    return word;
}

UACCEL_SHARED void uaccel_dot4_2x4(const struct uaccel_blocked_finish *p, const int8_t *first, const int8_t *second,
                                   uaccel_index words, const int32_t *weights, const int32_t *constants,
                                   int8_t *results)
{
    int32_t a0 = constants[0], a1 = constants[4], a2 = constants[8], a3 = constants[12];
    int32_t b0 = a0, b1 = a1, b2 = a2, b3 = a3;
    for (const int32_t *const end = weights + 4 * words; weights != end; weights += 4) {
        const int32_t x = uaccel_dot4_word(first), y = uaccel_dot4_word(second);
        a0 += uaccel_dot4(x, weights[0]);
        b0 += uaccel_dot4(y, weights[0]);
        a1 += uaccel_dot4(x, weights[1]);
        b1 += uaccel_dot4(y, weights[1]);
        a2 += uaccel_dot4(x, weights[2]);
        b2 += uaccel_dot4(y, weights[2]);
        a3 += uaccel_dot4(x, weights[3]);
        b3 += uaccel_dot4(y, weights[3]);
        first += 4;
        second += 4;
    }
    results[0] = uaccel_blocked_round(p, a0, constants);
    results[1] = uaccel_blocked_round(p, a1, constants + 4);
    results[2] = uaccel_blocked_round(p, a2, constants + 8);
    results[3] = uaccel_blocked_round(p, a3, constants + 12);
    results[4] = uaccel_blocked_round(p, b0, constants);
    results[5] = uaccel_blocked_round(p, b1, constants + 4);
    results[6] = uaccel_blocked_round(p, b2, constants + 8);
    results[7] = uaccel_blocked_round(p, b3, constants + 12);
}

UACCEL_SHARED void uaccel_dot4_1x4(const struct uaccel_blocked_finish *p, const int8_t *row, uaccel_index words,
                                   const int32_t *weights, const int32_t *constants, int8_t *results)
{
    int32_t a0 = constants[0], a1 = constants[4], a2 = constants[8], a3 = constants[12];
    for (const int32_t *const end = weights + 4 * words; weights != end; weights += 4) {
        const int32_t x = uaccel_dot4_word(row);
        a0 += uaccel_dot4(x, weights[0]);
        a1 += uaccel_dot4(x, weights[1]);
        a2 += uaccel_dot4(x, weights[2]);
        a3 += uaccel_dot4(x, weights[3]);
        row += 4;
    }
    results[0] = uaccel_blocked_round(p, a0, constants);
    results[1] = uaccel_blocked_round(p, a1, constants + 4);
    results[2] = uaccel_blocked_round(p, a2, constants + 8);
    results[3] = uaccel_blocked_round(p, a3, constants + 12);
}

/* All output channels of a pixel, or of two: `second` and `output2` are NULL without another one. */
UACCEL_SHARED void uaccel_dot4_channels(const struct uaccel_blocked_finish *p, const int8_t *first,
                                        const int8_t *second, uaccel_index words, const int32_t *weights,
                                        const int32_t *constants, uaccel_index channels, int8_t *output1,
                                        int8_t *output2)
{
    for (uaccel_index channel = 0; channel < channels; channel += 4) {
        const uaccel_index count = channels - channel < 4 ? channels - channel : 4;
        int8_t results[8];
        if (second == NULL) {
            uaccel_dot4_1x4(p, first, words, weights, constants, results);
        } else {
            uaccel_dot4_2x4(p, first, second, words, weights, constants, results);
        }
        for (uaccel_index i = 0; i < count; ++i) {
            output1[channel + i] = results[i];
            if (second != NULL) {
                output2[channel + i] = results[4 + i];
            }
        }
        weights += 4 * words;
        constants += 16;
    }
}

/* scratch: two windows of whole words; what lies behind a window meets weights that are zero. */
UACCEL_SHARED void uaccel_conv2d_dot4_s8(const struct uaccel_conv2d_dot4 *p, const int8_t *input,
                                         const int32_t *weights, const int32_t *constants, int8_t *output,
                                         void *scratch)
{
    const struct uaccel_conv2d_blocked *const q = &p->windows;
    const uaccel_index words = (q->kernel_height * q->kernel_width * q->in_channels + 3) / 4;
    const uaccel_index pixels = q->out_height * q->out_width;
    int8_t *const first = scratch, *const second = first + 4 * words;
    uaccel_index column = 0;
    for (uaccel_index n = 0; n < q->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            const bool both = pixel + 1 < pixels;
            int8_t *const result = output;
            uaccel_conv2d_blocked_window(q, input, pixel, first);
            if (both) {
                uaccel_conv2d_blocked_window(q, input, pixel + 1, second);
                output += uaccel_conv2d_blocked_step(q, &column);
            }
            uaccel_dot4_channels(&q->finish, first, both ? second : NULL, words, weights, constants, q->out_channels,
                                 result, output);
            output += uaccel_conv2d_blocked_step(q, &column);
        }
        input += q->in_height * q->in_width * q->in_channels;
    }
}

/* The rows have whole words. */
UACCEL_SHARED void uaccel_rows_dot4_s8(const struct uaccel_rows_dot4 *p, const int8_t *input, const int32_t *weights,
                                       const int32_t *constants, int8_t *output)
{
    const uaccel_index words = p->depth / 4;
    for (uaccel_index row = 0; row < p->rows; row += 2) {
        const bool both = row + 1 < p->rows;
        uaccel_dot4_channels(&p->finish, input, both ? input + p->depth : NULL, words, weights, constants,
                             p->out_channels, output, output + p->out_channels);
        input += 2 * p->depth;
        output += 2 * p->out_channels;
    }
}

#endif
