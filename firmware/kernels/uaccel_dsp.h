/* What the kernels for Arm's DSP extension share (Cortex-M4, M7, M33): inner loops, and their last steps.
 *
 * Weights are packed ahead of time into one stream of words that the loops read from front to end. Two output
 * channels A and B share a word: each of its halves is 256 * a + b for one input. With that word as it is SMLAD adds
 * up S = 256 * A + B, with its low bytes alone (SXTB16) it adds up B, and A = (S - B) / 256. So four
 * multiply-accumulates take three instructions and weights stay bytes. The compiler checks that A fits into 24 bits.
 *
 * Inputs are halves of words, too: of each four bytes SXTB16 takes 0 and 2, and with a rotation 1 and 3. */
#ifndef UACCEL_DSP_H
#define UACCEL_DSP_H

#include "uaccel_kernel.h"

#if !defined(__ARM_FEATURE_DSP)
#error "this model was compiled for a CPU with Arm's DSP extension; compile it again with --board and your board"
#endif
#include <arm_acle.h>

/* The output stage. Of a channel the stream holds {multiplier, offset, shift}: offset is the rounding's half and the
 * zero point, both times 2^shift. */
struct uaccel_dsp_finish {
    int32_t sign;            /* 1: a negative tie is rounded down; 0: it ends below clamp_min, either way */
    int32_t clamp;           /* 1: clamp to the bounds below; 0: to int8 alone */
    uint32_t lowest, highest; /* the bounds, in each byte */
};
UACCEL_AT(uaccel_dsp_finish, sign, 0);
UACCEL_AT(uaccel_dsp_finish, clamp, 4);
UACCEL_AT(uaccel_dsp_finish, lowest, 8);
UACCEL_AT(uaccel_dsp_finish, highest, 12);

/* uaccel_round: sums that come doubled, with the constants of one channel. Uses r2, r3, r12; in single precision, which
 * is sign 2, s0 to s2 as well, and the constants are half the scale, the zero point and nothing. */
#define UACCEL_DSP_MACROS                                                                                            \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_round2 a, b, sign\n"                                                                              \
    "ldmia r1!, {r2, r3, r12}\n"                                                                                     \
    ".if \\sign == 2\n"                                                                                              \
    "vmov s0, s1, \\a, \\b\n"                                                                                        \
    "vmov s2, r2\n"                                                                                                  \
    "vcvt.f32.s32 s0, s0\n"                                                                                          \
    "vcvt.f32.s32 s1, s1\n"                                                                                          \
    "vmul.f32 s0, s0, s2\n"                                                                                          \
    "vmul.f32 s1, s1, s2\n"                                                                                          \
    "vcvtr.s32.f32 s0, s0\n"                                                                                         \
    "vcvtr.s32.f32 s1, s1\n"                                                                                         \
    "vmov \\a, \\b, s0, s1\n"                                                                                        \
    "qadd \\a, \\a, r3\n"                                                                                            \
    "qadd \\b, \\b, r3\n"                                                                                            \
    ".elseif \\sign\n"                                                                                               \
    "smmulr \\a, \\a, r2\n"                                                                                          \
    "smmulr \\b, \\b, r2\n"                                                                                          \
    "add \\a, \\a, \\a, asr #31\n"                                                                                   \
    "add \\b, \\b, \\b, asr #31\n"                                                                                   \
    "add \\a, \\a, r3\n"                                                                                             \
    "add \\b, \\b, r3\n"                                                                                             \
    ".else\n"                                                                                                        \
    "smmlar \\a, \\a, r2, r3\n"                                                                                      \
    "smmlar \\b, \\b, r2, r3\n"                                                                                      \
    ".endif\n"                                                                                                       \
    ".if \\sign < 2\n"                                                                                               \
    "asr \\a, \\a, r12\n"                                                                                            \
    "asr \\b, \\b, r12\n"                                                                                            \
    ".endif\n"                                                                                                       \
    "ssat \\a, #8, \\a\n"                                                                                            \
    "ssat \\b, #8, \\b\n"                                                                                            \
    ".endm\n"                                                                                                        \
    ".macro uaccel_round1 a, sign\n"                                                                                 \
    "ldmia r1!, {r2, r3, r12}\n"                                                                                     \
    ".if \\sign == 2\n"                                                                                              \
    "vmov s0, \\a\n"                                                                                                 \
    "vmov s2, r2\n"                                                                                                  \
    "vcvt.f32.s32 s0, s0\n"                                                                                          \
    "vmul.f32 s0, s0, s2\n"                                                                                          \
    "vcvtr.s32.f32 s0, s0\n"                                                                                         \
    "vmov \\a, s0\n"                                                                                                 \
    "qadd \\a, \\a, r3\n"                                                                                            \
    ".elseif \\sign\n"                                                                                               \
    "smmulr \\a, \\a, r2\n"                                                                                          \
    "add \\a, \\a, \\a, asr #31\n"                                                                                   \
    "add \\a, \\a, r3\n"                                                                                             \
    ".else\n"                                                                                                        \
    "smmlar \\a, \\a, r2, r3\n"                                                                                      \
    ".endif\n"                                                                                                       \
    ".if \\sign < 2\n"                                                                                               \
    "asr \\a, \\a, r12\n"                                                                                            \
    ".endif\n"                                                                                                       \
    "ssat \\a, #8, \\a\n"                                                                                            \
    ".endm\n"                                                                                                        \
    /* A of a pair from S and B, and both twice their value */                                                       \
    ".macro uaccel_part s, b\n"                                                                                      \
    "sub \\s, \\s, \\b\n"                                                                                            \
    "asr \\s, \\s, #7\n"                                                                                             \
    "lsl \\b, \\b, #1\n"                                                                                             \
    ".endm\n"                                                                                                        \
    ".macro uaccel_pack a, b, c, d\n"                                                                                \
    "bfi \\a, \\b, #8, #8\n"                                                                                         \
    "bfi \\a, \\c, #16, #8\n"                                                                                        \
    "bfi \\a, \\d, #24, #8\n"                                                                                        \
    ".endm\n"                                                                                                        \
    /* each byte of \v into the bounds in r2 and r3; uses r12 */                                                     \
    ".macro uaccel_clamp4 v\n"                                                                                       \
    "ssub8 r12, \\v, r2\n"                                                                                           \
    "sel \\v, \\v, r2\n"                                                                                             \
    "ssub8 r12, r3, \\v\n"                                                                                           \
    "sel \\v, \\v, r3\n"                                                                                             \
    ".endm\n"

#define UACCEL_DSP_END_MACROS                                                                                        \
    ".purgem uaccel_round2\n"                                                                                        \
    ".purgem uaccel_round1\n"                                                                                        \
    ".purgem uaccel_part\n"                                                                                          \
    ".purgem uaccel_pack\n"                                                                                          \
    ".purgem uaccel_clamp4\n"

/* Four inputs at r0 with the weights of eight channels at r1, into r4 to r11: S and B of each pair. */
#define UACCEL_DSP_EIGHT \
    ".macro uaccel_step x\n" \
    "ldmia r1!, {r12, lr}\n" \
    "smlad r4, \\x, r12, r4\n" \
    "sxtb16 r12, r12\n" \
    "smlad r5, \\x, r12, r5\n" \
    "smlad r6, \\x, lr, r6\n" \
    "sxtb16 lr, lr\n" \
    "smlad r7, \\x, lr, r7\n" \
    "ldmia r1!, {r12, lr}\n" \
    "smlad r8, \\x, r12, r8\n" \
    "sxtb16 r12, r12\n" \
    "smlad r9, \\x, r12, r9\n" \
    "smlad r10, \\x, lr, r10\n" \
    "sxtb16 lr, lr\n" \
    "smlad r11, \\x, lr, r11\n" \
    ".endm\n" \
    ".macro uaccel_steps\n" \
    "ldr r2, [r0], #4\n" \
    "sxtb16 r3, r2, ror #8\n" \
    "sxtb16 r2, r2\n" \
    "uaccel_step r2\n" \
    "uaccel_step r3\n" \
    ".endm\n"

#define UACCEL_DSP_END_EIGHT \
    ".purgem uaccel_step\n"  \
    ".purgem uaccel_steps\n"

/* The bodies below find their parameters in registers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Two bytes vectors a and b of `words` words (one at least), as halves and in turn: where `target` ends. */
UACCEL_ASSEMBLY int16_t *uaccel_dsp_widen(int16_t *target, const int8_t *a, const int8_t *b, uaccel_index words)
{
    __asm__(".syntax unified\n"
            "push {r4-r9}\n"
            "1: ldr r4, [r1], #4\n"
            "ldr r5, [r2], #4\n"
            "sxtb16 r6, r4\n"
            "sxtb16 r7, r5\n"
            "sxtb16 r8, r4, ror #8\n"
            "sxtb16 r9, r5, ror #8\n"
            "stmia r0!, {r6-r9}\n"
            "subs r3, #1\n"
            "bne 1b\n"
            "pop {r4-r9}\n"
            "bx lr\n");
}

/* What uaccel_dsp_2x4 works on; it counts in the last three. */
struct uaccel_dsp_job {
    const int16_t *patches; /* both pixels' inputs as uaccel_dsp_widen leaves them */
    const int16_t *end;
    const struct uaccel_dsp_finish *finish;
    int8_t *first, *second; /* the pixels' results */
    uaccel_index quads;     /* how many times four channels: one at least */
};
UACCEL_AT(uaccel_dsp_job, patches, 0);
UACCEL_AT(uaccel_dsp_job, end, 4);
UACCEL_AT(uaccel_dsp_job, finish, 8);
UACCEL_AT(uaccel_dsp_job, first, 12);
UACCEL_AT(uaccel_dsp_job, second, 16);
UACCEL_AT(uaccel_dsp_job, quads, 20);

#define UACCEL_BODY "uaccel_dsp_body.h"
#define UACCEL_NEEDS_FPU
#include "uaccel_roundings.h"

#pragma GCC diagnostic pop

/* Four bytes of a result, or those of them that there are. */
UACCEL_KERNEL void uaccel_dsp_store(int8_t *target, uint32_t word, uaccel_index count)
{
    if (count >= 4) {
        memcpy(target, &word, 4);
        return;
    }
    for (; count > 0; --count) {
        *target++ = (int8_t)word;
        word >>= 8;
    }
}

#endif
