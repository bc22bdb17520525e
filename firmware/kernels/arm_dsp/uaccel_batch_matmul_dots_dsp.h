/* Matrix products for Arm's DSP extension: columns are widened to halves of words, less their zero point. */
#ifndef UACCEL_BATCH_MATMUL_DOTS_DSP_H
#define UACCEL_BATCH_MATMUL_DOTS_DSP_H

#include "uaccel_batch_matmul.h"
#include "uaccel_dsp.h"

/* Of each four elements those of number 0 and 2 of eight columns, and then those of 1 and 3. */
UACCEL_KERNEL void uaccel_batch_matmul_pack_dots_dsp(const struct uaccel_batch_matmul *p, const int8_t *columns,
                                                     uaccel_index count, uaccel_index bytes, void *packed)
{
    int16_t *halves = packed;
    if (count < 8 || (p->depth & 3) != 0) {
        memset(packed, 0, (size_t)bytes);
    }
    for (uaccel_index k = 0; k < p->depth; ++k) {
        const int8_t *const from = columns + k * p->rhs_depth_step;
        int16_t *const to = halves + (k >> 2) * 32 + (k & 1) * 16 + (k >> 1 & 1);
        for (uaccel_index c = 0; c < count; ++c) {
            to[2 * c] = (int16_t)(from[c * p->rhs_column_step] - p->rhs_zero_point);
        }
    }
}

UACCEL_ASSEMBLY_BEGIN

/* A row, of which input..end are bytes, a multiple of four, times eight packed columns. */
UACCEL_ASSEMBLY void uaccel_batch_matmul_eight_dots_dsp(const int8_t *input, const int8_t *end, const void *columns,
                                                        int32_t *sums)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_two a, b\n"
            "ldmia r2!, {r12, lr}\n"
            "smlad \\a, r3, r12, \\a\n"
            "smlad \\b, r3, lr, \\b\n"
            ".endm\n"
            ".macro uaccel_eight\n"
            "uaccel_two r4, r5\n"
            "uaccel_two r6, r7\n"
            "uaccel_two r8, r9\n"
            "uaccel_two r10, r11\n"
            ".endm\n"
            "push {r3-r11, lr}\n"
            ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "1: ldr r3, [r0]\n"
            "sxtb16 r3, r3\n"
            "uaccel_eight\n"
            "ldr r3, [r0], #4\n"
            "sxtb16 r3, r3, ror #8\n"
            "uaccel_eight\n"
            "cmp r0, r1\n"
            "bne 1b\n"
            "ldr r3, [sp]\n"
            "stmia r3, {r4-r11}\n"
            "pop {r3-r11, pc}\n"
            UACCEL_PURGE("uaccel_two, uaccel_eight"));
}

UACCEL_ASSEMBLY_END

#define UACCEL_DOTS(name) name##_dots_dsp
#define UACCEL_DOTS_BYTE(value) __builtin_arm_ssat(value, 8)
#include "uaccel_batch_matmul_dots_scalar_body.h"

#endif
