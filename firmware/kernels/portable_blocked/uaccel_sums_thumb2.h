/* Sums of products of bytes for Thumb-2 without its DSP extension: compilers keep eight sums in registers only in loops
 * of one step, whose end then takes as long as two products. */
#ifndef UACCEL_SUMS_THUMB2_H
#define UACCEL_SUMS_THUMB2_H

#include "uaccel_kernel.h"

/* The macro `uaccel_step`, of `bytes` bytes of code, `count` times. The first round begins within, so that there are
 * `depth` steps in all; r12 changes. */
#define UACCEL_SUMS_ROUNDS                       \
    ".macro uaccel_rounds depth, count, bytes\n" \
    ".irp sum, 4, 5, 6, 7, 8, 9, 10, 11\n"      \
    "mov r\\sum, #0\n"                         \
    ".endr\n"                                    \
    "rsb \\depth, \\depth, #0\n"                \
    "and \\depth, \\depth, #\\count - 1\n"      \
    "mov r12, #\\bytes\n"                        \
    "mul \\depth, \\depth, r12\n"               \
    "add pc, \\depth\n"                          \
    "nop\n"                                       \
    "1: .rept \\count\n"                         \
    "uaccel_step\n"                               \
    ".endr\n"                                     \
    ".endm\n"

UACCEL_ASSEMBLY_BEGIN

UACCEL_ASSEMBLY void uaccel_sums_2x4_s8(const int8_t *first, const int8_t *second, uaccel_index depth,
                                        const int8_t *weights, int32_t *sums)
{
    __asm__(".syntax unified\n" UACCEL_SUMS_ROUNDS
            ".macro uaccel_products a, b\n"
            "ldrsb lr, [r3], #1\n"
            "mla \\a, r2, lr, \\a\n"
            "mla \\b, r12, lr, \\b\n"
            ".endm\n"
            ".macro uaccel_step\n"
            "ldrsb r2, [r0], #1\n"
            "ldrsb r12, [r1], #1\n"
            "uaccel_products r4, r8\n"
            "uaccel_products r5, r9\n"
            "uaccel_products r6, r10\n"
            "uaccel_products r7, r11\n"
            ".endm\n"
            "push {r3-r11, lr}\n"
            "add r12, r0, r2\n"
            "str r12, [sp]\n"
            "uaccel_rounds r2, 4, 56\n"
            "ldr lr, [sp]\n"
            "cmp r0, lr\n"
            "bne 1b\n"
            "ldr r12, [sp, #40]\n"
            "stmia r12, {r4-r11}\n"
            "pop {r3-r11, pc}\n" UACCEL_PURGE("uaccel_rounds, uaccel_products, uaccel_step"));
}

UACCEL_ASSEMBLY void uaccel_sums_8_s8(const int8_t *input, uaccel_index depth, const int8_t *weights, int32_t *sums)
{
    __asm__(".syntax unified\n" UACCEL_SUMS_ROUNDS
            ".macro uaccel_products a, b\n"
            "ldrsb r12, [r2], #1\n"
            "ldrsb lr, [r2], #1\n"
            "mla \\a, r3, r12, \\a\n"
            "mla \\b, r3, lr, \\b\n"
            ".endm\n"
            ".macro uaccel_step\n"
            "ldrsb r3, [r0], #1\n"
            "uaccel_products r4, r5\n"
            "uaccel_products r6, r7\n"
            "uaccel_products r8, r9\n"
            "uaccel_products r10, r11\n"
            ".endm\n"
            "push {r3-r11, lr}\n"
            "mov r3, r1\n"
            "add r1, r0\n"
            "uaccel_rounds r3, 2, 68\n"
            "cmp r0, r1\n"
            "bne 1b\n"
            "ldr r3, [sp]\n"
            "stmia r3, {r4-r11}\n"
            "pop {r3-r11, pc}\n" UACCEL_PURGE("uaccel_rounds, uaccel_products, uaccel_step"));
}

UACCEL_ASSEMBLY_END

#endif
