/* Matrix products of int16 for Arm's DSP extension: two products an instruction, added to 64 bits. */
#ifndef UACCEL_BATCH_MATMUL16_DSP_H
#define UACCEL_BATCH_MATMUL16_DSP_H

#include "uaccel_batch_matmul16.h"
#include "uaccel_dsp.h"

/* Of each two elements a word of every column. */
UACCEL_KERNEL void uaccel_batch_matmul16_pack_dsp(const struct uaccel_batch_matmul16 *p, const int16_t *columns,
                                                  uaccel_index count, int16_t *packed)
{
    uaccel_batch_matmul16_spread(p, columns, count, 2, packed);
}

UACCEL_ASSEMBLY_BEGIN

/* A row, of which input..end are the elements, an even number, times four packed columns. */
UACCEL_ASSEMBLY void uaccel_batch_matmul16_four_dsp(const int16_t *input, const int16_t *end, const int16_t *columns,
                                                    int64_t *sums)
{
    __asm__(".syntax unified\n"
            "push {r3-r11, lr}\n"
            "mov lr, r1\n"
            ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "1: ldr r12, [r0], #4\n"
            "ldmia r2!, {r1, r3}\n"
            "smlald r4, r5, r12, r1\n"
            "smlald r6, r7, r12, r3\n"
            "ldmia r2!, {r1, r3}\n"
            "smlald r8, r9, r12, r1\n"
            "smlald r10, r11, r12, r3\n"
            "cmp r0, lr\n"
            "bne 1b\n"
            "pop {r3}\n"
            "stmia r3, {r4-r11}\n"
            "pop {r4-r11, pc}\n");
}

UACCEL_ASSEMBLY_END

#define UACCEL_MATMUL16(name) name##_dsp
#include "uaccel_batch_matmul16_body.h"

#endif
