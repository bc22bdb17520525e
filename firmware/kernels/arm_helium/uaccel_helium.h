/* What the kernels for Arm Helium share (Cortex-M55, M85; MVE with integers): inner loops, and their last steps.
 *
 * VMLADAVA adds up sixteen products of bytes in one of eight registers: of two windows with the weights of four output
 * channels each, or of one row with those of eight. Weights are packed ahead of time into one stream that the loops
 * read from front to end; inputs are bytes as they are. Weights behind the end of a window are zero. */
#ifndef UACCEL_HELIUM_H
#define UACCEL_HELIUM_H

#include "uaccel_kernel.h"

#if !defined(__ARM_FEATURE_MVE) || !(__ARM_FEATURE_MVE & 1)
#error "made for Arm Helium: name the CPU to the compiler (-mcpu=cortex-m55), or compile for another --board"
#endif
#include <arm_mve.h>

/* What the output stage does behind the multiplication of each channel by its own constants. */
struct uaccel_helium_finish {
    int32_t zero_point, lowest, highest;
    int32_t sign;  /* 1: a negative tie is rounded down; 0: it ends below `lowest`, either way; 2: single precision; 3: the
                      same behind an addition, whose term stands where others have a shift */
    int32_t clamp; /* 1: clamp to the bounds; 0: to int8, which they are */
};

/* uaccel_gather puts four of eight sums into q0 and the others into q1. */
#define UACCEL_HELIUM_MACROS                                                                                         \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_gather a, b, c, d, e, f, g, h\n"                                                                  \
    "vmov q0[2], q0[0], \\a, \\c\n"                                                                                  \
    "vmov q0[3], q0[1], \\b, \\d\n"                                                                                  \
    "vmov q1[2], q1[0], \\e, \\g\n"                                                                                  \
    "vmov q1[3], q1[1], \\f, \\h\n"                                                                                  \
    ".endm\n"

/* A loop that rounds in single precision. Without floating-point vectors there is none, and to call it is a fault. */
#if __ARM_FEATURE_MVE & 2
#define UACCEL_HELIUM_SINGLE(kind, loop) loop
#define UACCEL_HELIUM_SINGLE_LOOPS(define, loop, what) define(loop##_float32, what, 2, 1) define(loop##_rest, what, 3, 1)
#else
#define UACCEL_HELIUM_SINGLE(kind, loop) ((kind *)0)
#define UACCEL_HELIUM_SINGLE_LOOPS(define, loop, what)
#endif

/* A loop for each way to end, by what defines one: define(name, what, sign, clamp), both as in the structure above. */
#define UACCEL_HELIUM_LOOPS(define, loop, what)                          \
    define(loop, what, 0, 0) define(loop##_clamp, what, 0, 1)            \
    define(loop##_sign, what, 1, 0) define(loop##_sign_clamp, what, 1, 1) \
    UACCEL_HELIUM_SINGLE_LOOPS(define, loop, what)

/* Which of these is wanted. A constant decides, so that code for the others takes no place. */
#define UACCEL_HELIUM_LOOP_OF(kind, loop, finish)                                                                    \
    ((finish)->sign == 3   ? UACCEL_HELIUM_SINGLE(kind, loop##_rest)                                                 \
     : (finish)->sign == 2 ? UACCEL_HELIUM_SINGLE(kind, loop##_float32)                                              \
     : (finish)->sign      ? ((finish)->clamp ? loop##_sign_clamp : loop##_sign)                                     \
                           : ((finish)->clamp ? loop##_clamp : loop))

#define UACCEL_HELIUM_END_MACROS ".purgem uaccel_gather\n"

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
