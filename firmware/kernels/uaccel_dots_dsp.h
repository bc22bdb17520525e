/* Sums of products for Arm's DSP extension, eight rows of weights at a time: what SVDF, LSTM and others begin with. */
#ifndef UACCEL_DOTS_DSP_H
#define UACCEL_DOTS_DSP_H

#include "uaccel_dots.h"
#include "uaccel_dsp.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* input..end: bytes, a multiple of four. weights: for each four inputs the words of inputs 0 and 2 of four pairs of
 * rows, and then those of 1 and 3. */
UACCEL_ASSEMBLY void uaccel_dots8_dsp(const int8_t *input, const int8_t *end, const int32_t *weights, int32_t *sums)
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

#pragma GCC diagnostic pop

UACCEL_KERNEL int32_t uaccel_dot_s8_dsp(const int8_t *a, const int8_t *b, uaccel_index count, int32_t sum)
{
    for (; count >= 4; count -= 4) {
        uint32_t x, y;
        memcpy(&x, a, 4);
        memcpy(&y, b, 4);
        sum = __smlad(__sxtb16(x), __sxtb16(y), sum);
        sum = __smlad(__sxtb16(x >> 8 | x << 24), __sxtb16(y >> 8 | y << 24), sum);
        a += 4;
        b += 4;
    }
    for (; count > 0; --count) {
        sum += *a++ * *b++;
    }
    return sum;
}

UACCEL_KERNEL int32_t uaccel_dot_s16_dsp(const int16_t *a, const int16_t *b, uaccel_index count, int32_t sum)
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

#endif
