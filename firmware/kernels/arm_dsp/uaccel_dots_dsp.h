/* Sums of products for Arm's DSP extension, up to eight rows of weights at a time: what SVDF, LSTM and others begin
 * with. */
#ifndef UACCEL_DOTS_DSP_H
#define UACCEL_DOTS_DSP_H

#include "uaccel_dots.h"
#include "uaccel_dsp.h"

UACCEL_ASSEMBLY_BEGIN

/* input..end: bytes, a multiple of four. weights: for each four inputs the words of inputs 0 and 2 of four pairs of
 * rows, and then those of 1 and 3. */
UACCEL_ASSEMBLY void uaccel_eight_dots_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
{
    __asm__(UACCEL_DSP_MACROS UACCEL_DSP_EIGHT
            "push {r1, r3-r11, lr}\n"
            "sub r12, r1, r0\n"
            "and r12, r12, #15\n"
            "sub r12, r1, r12\n" /* where whole rounds of sixteen bytes end */
            "mov r1, r2\n"
            ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "push {r12}\n"
            "b 2f\n"
            "1: .rept 4\n"
            "uaccel_steps\n"
            ".endr\n"
            "ldr r12, [sp]\n"
            "2: cmp r0, r12\n"
            "bne 1b\n"
            "ldr r12, [sp, #4]\n"
            "b 4f\n"
            "3: uaccel_steps\n"
            "ldr r12, [sp, #4]\n"
            "4: cmp r0, r12\n"
            "bne 3b\n"
            "sub r4, r4, r5\n"
            "sub r6, r6, r7\n"
            "sub r8, r8, r9\n"
            "sub r10, r10, r11\n"
            ".irp sum, r4, r6, r8, r10\n"
            "asr \\sum, \\sum, #8\n"
            ".endr\n"
            "ldr r3, [sp, #8]\n"
            "stmia r3, {r4-r11}\n"
            "add sp, #12\n"
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

/* Words of the weights of up to eight rows. */
UACCEL_KERNEL uaccel_index uaccel_words_dots_dsp(uaccel_index filled, uaccel_index rows)
{
    return rows > 4 ? filled * 2 : (rows > 2 ? filled : filled * rows / 4);
}

/* Up to eight rows: five or more as eight, fewer in pairs, and one by itself. */
UACCEL_SHARED void uaccel_rows_dots_dsp(const int8_t *input, uaccel_index filled, const int32_t *weights,
                                        uaccel_index rows, int32_t *sums)
{
    const int8_t *const end = input + filled;
    if (rows > 4) {
        uaccel_eight_dots_dsp(input, end, weights, sums);
        return;
    }
    for (; rows > 1; rows -= 2) {
        uaccel_pair_dots_dsp(input, end, weights, sums);
        weights += filled / 2;
        sums += 2;
        if (rows == 3) {
            rows = 4; /* the fourth is there, of zeros */
        }
    }
    if (rows == 1) {
        *sums = uaccel_row_s8_dots_dsp(input, (const int8_t *)weights, filled, 0);
    }
}

#define UACCEL_DOTS(name) name##_dots_dsp
#include "uaccel_dots_scalar_body.h"
#undef UACCEL_DOTS

#endif
