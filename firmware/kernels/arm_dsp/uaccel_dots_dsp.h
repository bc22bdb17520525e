/* Sums of products for Arm's DSP extension, up to eight rows of weights at a time: what SVDF, LSTM and others begin
 * with. */
#ifndef UACCEL_DOTS_DSP_H
#define UACCEL_DOTS_DSP_H

#include "uaccel_dots.h"
#include "uaccel_dsp.h"

UACCEL_ASSEMBLY_BEGIN

/* input..end: bytes, a multiple of four. weights: for each four inputs the words of inputs 0 and 2 of four pairs of
 * rows, and then those of 1 and 3. The first round begins within.
 * r0: inputs, r1: weights, r4 to r11: S and B of each pair; r2, r3, r12 and lr: what is multiplied. */
UACCEL_ASSEMBLY void uaccel_eight_dots_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
{
    __asm__(UACCEL_DSP_MACROS UACCEL_DSP_EIGHT
            "push {r1, r3-r11, lr}\n"
            ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "sub r3, r0, r1\n"
            "and r3, #12\n"
            "adr r12, 1f\n"
            "add r12, r12, r3, lsl #5\n" /* a step's bytes of code for each four of inputs */
            "orr r12, #1\n"
            "mov r1, r2\n"
            "bx r12\n"
            ".balign 4\n"
            "1: .rept 4\n"
            "uaccel_rows\n"
            ".endr\n"
            ".org 1b + 4 * 128\n"
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
            "ldr r3, [sp, #4]\n"
            "stmia r3, {r4-r11}\n"
            "add sp, #8\n"
            "pop {r4-r11, pc}\n" UACCEL_DSP_END_EIGHT UACCEL_DSP_END_MACROS);
}

/* Two rows: for each four inputs the word of inputs 0 and 2, and then that of 1 and 3. */
UACCEL_ASSEMBLY void uaccel_pair_dots_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_step\n"
            "ldr r6, [r0], #4\n"
            "ldmia r2!, {r7, r8}\n"
            "sxtb16 r12, r6\n"
            "sxtb16 r6, r6, ror #8\n"
            "smlad r4, r12, r7, r4\n"
            "sxtb16 r7, r7\n"
            "smlad r5, r12, r7, r5\n"
            "smlad r4, r6, r8, r4\n"
            "sxtb16 r8, r8\n"
            "smlad r5, r6, r8, r5\n"
            ".endm\n"
            "push {r4-r8, lr}\n"
            "mov r4, #0\n"
            "mov r5, #0\n"
            "sub r1, #4\n"
            "b 2f\n"
            "1: uaccel_step\n"
            "uaccel_step\n"
            "2: cmp r0, r1\n"
            "blo 1b\n"
            "bne 3f\n"
            "uaccel_step\n"
            "3: sub r4, r4, r5\n"
            "asr r4, r4, #8\n"
            "strd r4, r5, [r3]\n"
            "pop {r4-r8, pc}\n"
            ".purgem uaccel_step\n");
}

/* All inputs from r0 to r1: uaccel_step takes four, until a multiple of `bytes` is left, and uaccel_round so many, which
 * begin at a word, or steps take them all; r3 changes. */
#define UACCEL_DOTS_ROUNDS          \
    ".syntax unified\n"             \
    ".macro uaccel_rounds bytes\n"  \
    "b 2f\n"                        \
    "1: uaccel_step\n"              \
    "2: sub r3, r1, r0\n"           \
    "tst r3, #\\bytes - 1\n"        \
    "bne 1b\n"                      \
    "cmp r0, r1\n"                  \
    "beq 4f\n"                      \
    "tst r0, #3\n"                  \
    "bne 1b\n"                      \
    "3: uaccel_round\n"             \
    "cmp r0, r1\n"                  \
    "bne 3b\n"                      \
    "4:\n"                          \
    ".endm\n"

/* Four rows: for each four inputs the words of inputs 0 and 2 of two pairs, and then those of 1 and 3.
 * r0: inputs, r1: their end, r2: weights, r4 to r7: S and B of each pair, r8 and r9: inputs, r10 to lr: weights. */
UACCEL_ASSEMBLY void uaccel_four_dots_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
{
    __asm__(UACCEL_DOTS_ROUNDS
            ".macro uaccel_products x, a, b\n"
            "smlad r4, \\x, \\a, r4\n"
            "sxtb16 \\a, \\a\n"
            "smlad r5, \\x, \\a, r5\n"
            "smlad r6, \\x, \\b, r6\n"
            "sxtb16 \\b, \\b\n"
            "smlad r7, \\x, \\b, r7\n"
            ".endm\n"
            ".macro uaccel_inputs x\n"
            "ldmia r2!, {r10, r11, r12, lr}\n"
            "sxtb16 r3, \\x\n"
            "uaccel_products r3, r10, r11\n"
            "sxtb16 \\x, \\x, ror #8\n"
            "uaccel_products \\x, r12, lr\n"
            ".endm\n"
            ".macro uaccel_step\n"
            "ldr r8, [r0], #4\n"
            "uaccel_inputs r8\n"
            ".endm\n"
            ".macro uaccel_round\n"
            ".rept 2\n"
            "ldmia r0!, {r8, r9}\n"
            "uaccel_inputs r8\n"
            "uaccel_inputs r9\n"
            ".endr\n"
            ".endm\n"
            "push {r3-r11, lr}\n"
            ".irp sum, r4, r5, r6, r7\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "uaccel_rounds 16\n"
            "pop {r3}\n"
            "sub r4, r4, r5\n"
            "sub r6, r6, r7\n"
            "asr r4, r4, #8\n"
            "asr r6, r6, #8\n"
            "stmia r3, {r4-r7}\n"
            "pop {r4-r11, pc}\n"
            UACCEL_PURGE("uaccel_rounds, uaccel_products, uaccel_inputs, uaccel_step, uaccel_round"));
}

/* Three rows: for each four inputs the words of inputs 0 and 2 of a pair and of a row by itself, and then those of 1
 * and 3. r0: inputs, r1: their end, r2: weights, r4 and r5: S and B, r6: the third sum, r7 and r8: inputs, r9 to r12:
 * weights. */
UACCEL_ASSEMBLY void uaccel_three_dots_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
{
    __asm__(UACCEL_DOTS_ROUNDS
            ".macro uaccel_products x, pair, row\n"
            "smlad r4, \\x, \\pair, r4\n"
            "sxtb16 \\pair, \\pair\n"
            "smlad r5, \\x, \\pair, r5\n"
            "smlad r6, \\x, \\row, r6\n"
            ".endm\n"
            ".macro uaccel_inputs x\n"
            "ldmia r2!, {r9, r10, r11, r12}\n"
            "sxtb16 r3, \\x\n"
            "uaccel_products r3, r9, r10\n"
            "sxtb16 \\x, \\x, ror #8\n"
            "uaccel_products \\x, r11, r12\n"
            ".endm\n"
            ".macro uaccel_step\n"
            "ldr r7, [r0], #4\n"
            "uaccel_inputs r7\n"
            ".endm\n"
            ".macro uaccel_round\n"
            ".rept 2\n"
            "ldmia r0!, {r7, r8}\n"
            "uaccel_inputs r7\n"
            "uaccel_inputs r8\n"
            ".endr\n"
            ".endm\n"
            "push {r3-r11, lr}\n"
            ".irp sum, r4, r5, r6\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "uaccel_rounds 16\n"
            "pop {r3}\n"
            "sub r4, r4, r5\n"
            "asr r4, r4, #8\n"
            "stmia r3, {r4-r6}\n"
            "pop {r4-r11, pc}\n"
            UACCEL_PURGE("uaccel_rounds, uaccel_products, uaccel_inputs, uaccel_step, uaccel_round"));
}

/* Two rows by themselves: for each four inputs the words of inputs 0 and 2 of either, and then those of 1 and 3.
 * r0: inputs, r1: their end, r2: weights, r4 and r5: sums, r6 to r9: inputs, r10 to lr: weights. */
UACCEL_ASSEMBLY void uaccel_two_dots_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
{
    __asm__(UACCEL_DOTS_ROUNDS
            ".macro uaccel_inputs x\n"
            "ldmia r2!, {r10, r11, r12, lr}\n"
            "sxtb16 r3, \\x\n"
            "smlad r4, r3, r10, r4\n"
            "smlad r5, r3, r11, r5\n"
            "sxtb16 \\x, \\x, ror #8\n"
            "smlad r4, \\x, r12, r4\n"
            "smlad r5, \\x, lr, r5\n"
            ".endm\n"
            ".macro uaccel_step\n"
            "ldr r6, [r0], #4\n"
            "uaccel_inputs r6\n"
            ".endm\n"
            ".macro uaccel_round\n"
            ".rept 2\n"
            "ldmia r0!, {r6, r7, r8, r9}\n"
            ".irp x, r6, r7, r8, r9\n"
            "uaccel_inputs \\x\n"
            ".endr\n"
            ".endr\n"
            ".endm\n"
            "push {r3-r11, lr}\n"
            "mov r4, #0\n"
            "mov r5, #0\n"
            "uaccel_rounds 32\n"
            "pop {r3}\n"
            "strd r4, r5, [r3]\n"
            "pop {r4-r11, pc}\n" UACCEL_PURGE("uaccel_rounds, uaccel_inputs, uaccel_step, uaccel_round"));
}

/* One row: for each four inputs those of inputs 0 and 2 as halves of a word, and then those of 1 and 3.
 * r0: inputs, r1: their end, r2: weights, r4: the sum, r5 to r8: inputs, r9 to r12: weights. */
UACCEL_ASSEMBLY void uaccel_one_dots_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
{
    __asm__(UACCEL_DOTS_ROUNDS
            ".macro uaccel_products x, even, odd\n"
            "sxtb16 r3, \\x\n"
            "smlad r4, r3, \\even, r4\n"
            "sxtb16 \\x, \\x, ror #8\n"
            "smlad r4, \\x, \\odd, r4\n"
            ".endm\n"
            ".macro uaccel_step\n"
            "ldr r5, [r0], #4\n"
            "ldmia r2!, {r9, r10}\n"
            "uaccel_products r5, r9, r10\n"
            ".endm\n"
            ".macro uaccel_round\n"
            ".rept 2\n"
            "ldmia r0!, {r5, r6, r7, r8}\n"
            "ldmia r2!, {r9, r10, r11, r12}\n"
            "uaccel_products r5, r9, r10\n"
            "uaccel_products r6, r11, r12\n"
            "ldmia r2!, {r9, r10, r11, r12}\n"
            "uaccel_products r7, r9, r10\n"
            "uaccel_products r8, r11, r12\n"
            ".endr\n"
            ".endm\n"
            "push {r3-r11, lr}\n"
            "mov r4, #0\n"
            "uaccel_rounds 32\n"
            "pop {r3}\n"
            "str r4, [r3]\n"
            "pop {r4-r11, pc}\n" UACCEL_PURGE("uaccel_rounds, uaccel_products, uaccel_step, uaccel_round"));
}

UACCEL_ASSEMBLY_END

UACCEL_KERNEL int32_t uaccel_row_s8_dots_dsp(const int8_t *a, const int8_t *b, uaccel_index count, int32_t sum)
{
    for (; count >= 4; count -= 4) {
        uint32_t x, y;
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        sum = __smlad(__sxtb16((int8x4_t)x), __sxtb16((int8x4_t)y), sum);
        x = x >> 8 | x << 24;
        y = y >> 8 | y << 24;
        sum = __smlad(__sxtb16((int8x4_t)x), __sxtb16((int8x4_t)y), sum);
        a += 4;
        b += 4;
    }
    for (; count > 0; --count) {
        sum += *a++ * *b++;
    }
    return sum;
}

UACCEL_KERNEL int32_t uaccel_row_s16_dots_dsp(const int16_t *a, const int16_t *b, uaccel_index count, int32_t sum)
{
    for (; count >= 2; count -= 2) {
        int16x2_t x, y;
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        sum = __smlad(x, y, sum);
        a += 2;
        b += 2;
    }
    return count > 0 ? uaccel_add_wrapping(sum, *a * *b) : sum;
}

enum { UACCEL_DOTS_APART = 512 }; /* inputs, from which on two rows are not a pair: their weights take twice the bytes */

/* Words of the weights of up to eight rows. */
UACCEL_KERNEL uaccel_index uaccel_words_dots_dsp(uaccel_index filled, uaccel_index rows)
{
    const uaccel_index rest = rows & 3;
    const bool half = rest == 1 || (rest == 2 && filled < UACCEL_DOTS_APART);
    return rows / 4 * filled + (rest == 0 ? 0 : half ? filled / 2 : filled);
}

/* Up to eight rows: fewer as four, and the others as three, two or one. */
UACCEL_SHARED void uaccel_rows_dots_dsp(const int8_t *input, uaccel_index filled, const int32_t *weights,
                                        uaccel_index rows, int32_t *sums)
{
    const int8_t *const end = input + filled;
    if (rows == 8) {
        uaccel_eight_dots_dsp(input, end, weights, sums);
        return;
    }
    if (rows > 3) {
        uaccel_four_dots_dsp(input, end, weights, sums);
        rows -= 4;
        weights += filled;
        sums += 4;
    }
    if (rows == 3) {
        uaccel_three_dots_dsp(input, end, weights, sums);
    } else if (rows == 2 && filled < UACCEL_DOTS_APART) {
        uaccel_pair_dots_dsp(input, end, weights, sums);
    } else if (rows == 2) {
        uaccel_two_dots_dsp(input, end, weights, sums);
    } else if (rows == 1) {
        uaccel_one_dots_dsp(input, end, weights, sums);
    }
}

#define UACCEL_DOTS(name) name##_dots_dsp
#include "uaccel_dots_scalar_body.h"
#undef UACCEL_DOTS

#endif
