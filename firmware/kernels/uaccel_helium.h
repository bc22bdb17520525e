/* What the kernels for Arm Helium share (Cortex-M55, M85; MVE with integers): inner loops, and their last steps.
 *
 * VMLADAVA adds up sixteen products of bytes in one of eight registers: of two windows with the weights of four output
 * channels each, or of one row with those of eight. Weights are packed ahead of time into one stream that the loops
 * read from front to end; inputs are bytes as they are. Weights behind the end of a window are zero. */
#ifndef UACCEL_HELIUM_H
#define UACCEL_HELIUM_H

#include "uaccel_kernel.h"

#if !defined(__ARM_FEATURE_MVE) || !(__ARM_FEATURE_MVE & 1)
#error "this model was compiled for a CPU with Arm Helium; compile it again with --board and your board"
#endif
#include <arm_mve.h>

/* What the output stage does behind the multiplication of each channel by its own constants. */
struct uaccel_helium_finish {
    int32_t zero_point, lowest, highest;
    int32_t sign;  /* 1: a negative tie is rounded down; 0: it ends below `lowest`, either way; 2: single precision */
    int32_t clamp; /* 1: clamp to the bounds; 0: to int8, which they are */
};

/* Last steps of eight sums: uaccel_gather puts four of one kind into q0 and four of another into q1; uaccel_multiply by
 * multipliers, which are numbers of single precision where that is the rounding; uaccel_shift; uaccel_narrow. The
 * results are the low bytes of q0's halves, both kinds in turn. q7: the zero point; q6 and q5: the bounds, all of them
 * in halves. q2 is free. */
#define UACCEL_HELIUM_MACROS                                                                                         \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_gather a, b, c, d, e, f, g, h\n"                                                                  \
    "vmov q0[2], q0[0], \\a, \\c\n"                                                                                  \
    "vmov q0[3], q0[1], \\b, \\d\n"                                                                                  \
    "vmov q1[2], q1[0], \\e, \\g\n"                                                                                  \
    "vmov q1[3], q1[1], \\f, \\h\n"                                                                                  \
    ".endm\n"                                                                                                        \
    ".macro uaccel_multiply sign, m, n\n"                                                                            \
    ".if \\sign == 2\n"                                                                                              \
    "vcvt.f32.s32 q0, q0\n"                                                                                         \
    "vcvt.f32.s32 q1, q1\n"                                                                                         \
    "vmul.f32 q0, q0, \\m\n"                                                                                        \
    "vmul.f32 q1, q1, \\n\n"                                                                                        \
    "vcvtn.s32.f32 q0, q0\n"                                                                                        \
    "vcvtn.s32.f32 q1, q1\n"                                                                                        \
    ".else\n"                                                                                                        \
    "vqrdmulh.s32 q0, q0, \\m\n"                                                                                    \
    "vqrdmulh.s32 q1, q1, \\n\n"                                                                                    \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    ".macro uaccel_shift sign, s, t\n"                                                                               \
    ".if \\sign == 1\n"                                                                                              \
    "vshr.s32 q2, q0, #31\n"                                                                                         \
    "vadd.i32 q0, q0, q2\n"                                                                                          \
    "vshr.s32 q2, q1, #31\n"                                                                                         \
    "vadd.i32 q1, q1, q2\n"                                                                                          \
    ".endif\n"                                                                                                       \
    ".if \\sign < 2\n"                                                                                               \
    "vrshl.s32 q0, q0, \\s\n"                                                                                       \
    "vrshl.s32 q1, q1, \\t\n"                                                                                       \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    ".macro uaccel_narrow clamp\n"                                                                                   \
    "vqmovnb.s32 q0, q0\n"                                                                                           \
    "vqmovnt.s32 q0, q1\n"                                                                                           \
    "vqadd.s16 q0, q0, q7\n"                                                                                         \
    ".if \\clamp\n"                                                                                                  \
    "vmax.s16 q0, q0, q6\n"                                                                                          \
    "vmin.s16 q0, q0, q5\n"                                                                                          \
    ".else\n"                                                                                                        \
    "vqmovnb.s16 q0, q0\n"                                                                                           \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    /* the zero point and the bounds of a job; uses r2 to r4 */                                                      \
    ".macro uaccel_bounds job, at\n"                                                                                 \
    "ldr r2, [\\job, #\\at]\n"                                                                                       \
    "ldr r3, [\\job, #\\at + 4]\n"                                                                                   \
    "ldr r4, [\\job, #\\at + 8]\n"                                                                                   \
    "vdup.16 q7, r2\n"                                                                                               \
    "vdup.16 q6, r3\n"                                                                                               \
    "vdup.16 q5, r4\n"                                                                                               \
    ".endm\n"

/* A loop that rounds in single precision. Without floating-point vectors there is none, and to call it is a fault. */
#if __ARM_FEATURE_MVE & 2
#define UACCEL_HELIUM_SINGLE(kind, loop) loop
#else
#define UACCEL_HELIUM_SINGLE(kind, loop) ((kind *)0)
#endif

#define UACCEL_HELIUM_END_MACROS                                                                                     \
    ".purgem uaccel_gather\n"                                                                                        \
    ".purgem uaccel_multiply\n"                                                                                      \
    ".purgem uaccel_shift\n"                                                                                         \
    ".purgem uaccel_narrow\n"                                                                                        \
    ".purgem uaccel_bounds\n"

/* `count` bytes, which may be none. */
UACCEL_KERNEL void uaccel_helium_copy(int8_t *target, const int8_t *source, uaccel_index count)
{
    for (; count > 0; count -= 16) {
        const mve_pred16_t some = vctp8q((uint32_t)count);
        vstrbq_p_s8(target, vldrbq_z_s8(source, some), some);
        target += 16;
        source += 16;
    }
}

/* `count` bytes of one value. */
UACCEL_KERNEL void uaccel_helium_fill(int8_t *target, int32_t value, uaccel_index count)
{
    const int8x16_t all = vdupq_n_s8((int8_t)value);
    for (; count >= 64; count -= 64) {
        vstrbq_s8(target, all);
        vstrbq_s8(target + 16, all);
        vstrbq_s8(target + 32, all);
        vstrbq_s8(target + 48, all);
        target += 64;
    }
    for (; count >= 16; count -= 16) {
        vstrbq_s8(target, all);
        target += 16;
    }
    vstrbq_p_s8(target, all, vctp8q((uint32_t)count));
}

#endif
