/* Addition and subtraction of int8 tensors of one shape for Arm's DSP extension, where both inputs' weights and one
 * rounding at the end give the same bytes as three roundings: the compiler has tried all pairs of values. */
#ifndef UACCEL_ADD_LINEAR_DSP_H
#define UACCEL_ADD_LINEAR_DSP_H

#include "uaccel_dsp.h"

/* Of values x and y the result is (start + x * first + y * second) / 2^21, saturated. Weights have 8 bits more, and
 * each product is rounded down after it lost those. */
struct uaccel_add_linear_dsp {
    int32_t first, second, start;
    uaccel_index elements;
};
UACCEL_AT4(uaccel_add_linear_dsp, 0, first, second, start, elements);

UACCEL_ASSEMBLY_BEGIN

/* Four elements at a time, two times in a row, and one time at least; what remains is left. Halves of words hold 256 times a value. */
UACCEL_ASSEMBLY void uaccel_add_linear_dsp_fours(const struct uaccel_add_linear_dsp *p, const int8_t *input1,
                                                 const int8_t *input2, int8_t *output)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_four\n"
            "ldr r8, [r1], #4\n"
            "ldr r10, [r2], #4\n"
            "and r9, r0, r8, lsl #8\n"
            "and r8, r0, r8\n"
            "and r11, r0, r10, lsl #8\n"
            "and r10, r0, r10\n"
            "smlawb r12, r4, r9, r6\n"
            "smlawt r9, r4, r9, r6\n"
            "smlawb lr, r4, r8, r6\n"
            "smlawt r8, r4, r8, r6\n"
            "smlawb r12, r5, r11, r12\n"
            "smlawt r9, r5, r11, r9\n"
            "smlawb lr, r5, r10, lr\n"
            "smlawt r8, r5, r10, r8\n"
            "ssat r12, #8, r12, asr #21\n"
            "ssat lr, #8, lr, asr #21\n"
            "ssat r9, #8, r9, asr #21\n"
            "ssat r8, #8, r8, asr #21\n"
            "bfi r12, lr, #8, #8\n"
            "bfi r12, r9, #16, #8\n"
            "bfi r12, r8, #24, #8\n"
            "str r12, [r3], #4\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "ldmia r0, {r4-r7}\n"
            "mov r0, #0xFF00FF00\n"
            "bic r12, r7, #3\n"
            "tst r7, #4\n"
            "add r7, r12, r3\n" /* where the output ends */
            "bne 2f\n"
            "1: uaccel_four\n"
            "2: uaccel_four\n"
            "cmp r3, r7\n"
            "bne 1b\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_four\n");
}
UACCEL_ASSEMBLY_END

/* The output may be an input. */
UACCEL_SHARED void uaccel_add_linear_dsp_s8(const struct uaccel_add_linear_dsp *p, const int8_t *input1,
                                            const int8_t *input2, int8_t *output)
{
    const uaccel_index fours = p->elements & ~3;
    if (fours > 0) {
        uaccel_add_linear_dsp_fours(p, input1, input2, output);
    }
    for (uaccel_index i = fours; i < p->elements; ++i) {
        const int32_t x = (int32_t)((int64_t)p->first * input1[i] >> 8);
        const int32_t y = (int32_t)((int64_t)p->second * input2[i] >> 8);
        output[i] = (int8_t)__builtin_arm_ssat((p->start + x + y) >> 21, 8);
    }
}

#endif
