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

/* uaccel_round: sums that come doubled, with the constants of one channel. Uses r2, r3, r12. */
#define UACCEL_DSP_MACROS                                                                                            \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_round2 a, b, sign\n"                                                                              \
    "ldmia r1!, {r2, r3, r12}\n"                                                                                     \
    ".if \\sign\n"                                                                                                   \
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
    "asr \\a, \\a, r12\n"                                                                                            \
    "asr \\b, \\b, r12\n"                                                                                            \
    "ssat \\a, #8, \\a\n"                                                                                            \
    "ssat \\b, #8, \\b\n"                                                                                            \
    ".endm\n"                                                                                                        \
    ".macro uaccel_round1 a, sign\n"                                                                                 \
    "ldmia r1!, {r2, r3, r12}\n"                                                                                     \
    ".if \\sign\n"                                                                                                   \
    "smmulr \\a, \\a, r2\n"                                                                                          \
    "add \\a, \\a, \\a, asr #31\n"                                                                                   \
    "add \\a, \\a, r3\n"                                                                                             \
    ".else\n"                                                                                                        \
    "smmlar \\a, \\a, r2, r3\n"                                                                                      \
    ".endif\n"                                                                                                       \
    "asr \\a, \\a, r12\n"                                                                                            \
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

/* Two pixels' output channels, by fours. stream, of each four: S and B of two pairs at the start, for each two inputs
 * a word of each pair, and of each channel the constants of its output stage. */
UACCEL_ASSEMBLY void uaccel_dsp_2x4(struct uaccel_dsp_job *job, const int32_t *stream)
{
    __asm__(UACCEL_DSP_MACROS
            ".macro uaccel_step\n"
            "ldmia r0!, {r2, r3}\n"
            "ldmia r1!, {r12, lr}\n"
            "smlad r4, r2, r12, r4\n"
            "smlad r5, r3, r12, r5\n"
            "sxtb16 r12, r12\n"
            "smlad r6, r2, r12, r6\n"
            "smlad r7, r3, r12, r7\n"
            "smlad r8, r2, lr, r8\n"
            "smlad r9, r3, lr, r9\n"
            "sxtb16 lr, lr\n"
            "smlad r10, r2, lr, r10\n"
            "smlad r11, r3, lr, r11\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "ldmia r0, {r2, r3, r12}\n"
            "sub lr, r3, r2\n"
            "and lr, lr, #63\n"
            "sub lr, r3, lr\n" /* where whole rounds of eight steps end */
            "push {r0, r2, r3, r12, lr}\n"
            "1: ldr r0, [sp, #4]\n"
            "ldmia r1!, {r4, r6, r8, r10}\n"
            "mov r5, r4\n"
            "mov r7, r6\n"
            "mov r9, r8\n"
            "mov r11, r10\n"
            "ldr r12, [sp, #16]\n"
            "b 3f\n"
            "2: .rept 8\n"
            "uaccel_step\n"
            ".endr\n"
            "ldr r12, [sp, #16]\n"
            "3: cmp r0, r12\n"
            "bne 2b\n"
            "ldr r12, [sp, #8]\n"
            "b 5f\n"
            "4: uaccel_step\n"
            "ldr r12, [sp, #8]\n"
            "5: cmp r0, r12\n"
            "bne 4b\n"
            "ldr r0, [sp, #12]\n"
            "uaccel_part r4, r6\n"
            "uaccel_part r5, r7\n"
            "uaccel_part r8, r10\n"
            "uaccel_part r9, r11\n"
            "ldr r2, [r0]\n"
            "cmp r2, #0\n"
            "beq 6f\n"
            "uaccel_round2 r4, r5, 1\n"
            "uaccel_round2 r6, r7, 1\n"
            "uaccel_round2 r8, r9, 1\n"
            "uaccel_round2 r10, r11, 1\n"
            "b 7f\n"
            "6: uaccel_round2 r4, r5, 0\n"
            "uaccel_round2 r6, r7, 0\n"
            "uaccel_round2 r8, r9, 0\n"
            "uaccel_round2 r10, r11, 0\n"
            "7: uaccel_pack r4, r6, r8, r10\n"
            "uaccel_pack r5, r7, r9, r11\n"
            "ldr r2, [r0, #4]\n"
            "cmp r2, #0\n"
            "beq 8f\n"
            "ldrd r2, r3, [r0, #8]\n"
            "uaccel_clamp4 r4\n"
            "uaccel_clamp4 r5\n"
            "8: ldr r0, [sp]\n"
            "ldrd r2, r3, [r0, #12]\n"
            "str r4, [r2], #4\n"
            "str r5, [r3], #4\n"
            "strd r2, r3, [r0, #12]\n"
            "ldr r2, [r0, #20]\n"
            "subs r2, #1\n"
            "str r2, [r0, #20]\n"
            "bne 1b\n"
            "add sp, #20\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_step\n" UACCEL_DSP_END_MACROS);
}

/* Eight output channels of one pixel or row, by fours in the words of the result. input..end: bytes, a multiple of
 * four. stream: of four channel pairs S and B at the start, for each four inputs the words of inputs 0 and 2 and
 * then those of 1 and 3, and of each channel the constants of its output stage. */
UACCEL_ASSEMBLY uint64_t uaccel_dsp_1x8(const int8_t *input, const int8_t *end, const int32_t *stream,
                                            const struct uaccel_dsp_finish *finish)
{
    __asm__(UACCEL_DSP_MACROS
            ".macro uaccel_step x\n"
            "ldmia r1!, {r12, lr}\n"
            "smlad r4, \\x, r12, r4\n"
            "sxtb16 r12, r12\n"
            "smlad r5, \\x, r12, r5\n"
            "smlad r6, \\x, lr, r6\n"
            "sxtb16 lr, lr\n"
            "smlad r7, \\x, lr, r7\n"
            "ldmia r1!, {r12, lr}\n"
            "smlad r8, \\x, r12, r8\n"
            "sxtb16 r12, r12\n"
            "smlad r9, \\x, r12, r9\n"
            "smlad r10, \\x, lr, r10\n"
            "sxtb16 lr, lr\n"
            "smlad r11, \\x, lr, r11\n"
            ".endm\n"
            ".macro uaccel_steps\n"
            "ldr r2, [r0], #4\n"
            "sxtb16 r3, r2, ror #8\n"
            "sxtb16 r2, r2\n"
            "uaccel_step r2\n"
            "uaccel_step r3\n"
            ".endm\n"
            "push {r1, r3, r4-r11, lr}\n"
            "sub r12, r1, r0\n"
            "and r12, r12, #15\n"
            "sub r12, r1, r12\n" /* where whole rounds of sixteen bytes end */
            "mov r1, r2\n"
            "ldmia r1!, {r4-r11}\n"
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
            "uaccel_part r4, r5\n"
            "uaccel_part r6, r7\n"
            "uaccel_part r8, r9\n"
            "uaccel_part r10, r11\n"
            "uaccel_round1 r4, 1\n"
            "uaccel_round1 r5, 1\n"
            "uaccel_round1 r6, 1\n"
            "uaccel_round1 r7, 1\n"
            "uaccel_round1 r8, 1\n"
            "uaccel_round1 r9, 1\n"
            "uaccel_round1 r10, 1\n"
            "uaccel_round1 r11, 1\n"
            "uaccel_pack r4, r5, r6, r7\n"
            "uaccel_pack r8, r9, r10, r11\n"
            "ldr r0, [sp, #8]\n"
            "ldr r2, [r0, #4]\n"
            "cmp r2, #0\n"
            "beq 7f\n"
            "ldrd r2, r3, [r0, #8]\n"
            "uaccel_clamp4 r4\n"
            "uaccel_clamp4 r8\n"
            "7: mov r0, r4\n"
            "mov r1, r8\n"
            "add sp, #12\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_step\n"
            ".purgem uaccel_steps\n" UACCEL_DSP_END_MACROS);
}

/* Four channels of one pixel of a depthwise convolution. taps: a multiple of three addresses of pixels, up to `end`;
 * stream: of each channel its sum at the start, for each tap the weights of channels 0 and 2 in the halves of one
 * word and those of 1 and 3 in another, and of each channel the constants of its output stage. The fifth parameter,
 * on the stack: where the output stage is. */
UACCEL_ASSEMBLY uint32_t uaccel_dsp_depthwise(const int8_t *const *taps, const int8_t *const *end,
                                                  const int32_t *stream, uaccel_index channel,
                                                  const struct uaccel_dsp_finish *finish)
{
    __asm__(UACCEL_DSP_MACROS
            ".macro uaccel_tap p\n"
            "ldr \\p, [\\p, r8]\n"
            "ldmia r1!, {r2, r3}\n"
            "sxtb16 r12, \\p\n"
            "sxtb16 \\p, \\p, ror #8\n"
            "smlabb r4, r12, r2, r4\n"
            "smlatt r6, r12, r2, r6\n"
            "smlabb r5, \\p, r3, r5\n"
            "smlatt r7, \\p, r3, r7\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "mov lr, r1\n"
            "mov r8, r3\n"
            "mov r1, r2\n"
            "ldmia r1!, {r4-r7}\n"
            "1: ldmia r0!, {r9, r10, r11}\n"
            "uaccel_tap r9\n"
            "uaccel_tap r10\n"
            "uaccel_tap r11\n"
            "cmp r0, lr\n"
            "bne 1b\n"
            "ldr r0, [sp, #36]\n"
            "lsl r4, r4, #1\n"
            "lsl r5, r5, #1\n"
            "lsl r6, r6, #1\n"
            "lsl r7, r7, #1\n"
            "ldr r2, [r0]\n"
            "cmp r2, #0\n"
            "beq 5f\n"
            "uaccel_round1 r4, 1\n"
            "uaccel_round1 r5, 1\n"
            "uaccel_round1 r6, 1\n"
            "uaccel_round1 r7, 1\n"
            "b 6f\n"
            "5: uaccel_round1 r4, 0\n"
            "uaccel_round1 r5, 0\n"
            "uaccel_round1 r6, 0\n"
            "uaccel_round1 r7, 0\n"
            "6: uaccel_pack r4, r5, r6, r7\n"
            "ldr r2, [r0, #4]\n"
            "cmp r2, #0\n"
            "beq 7f\n"
            "ldrd r2, r3, [r0, #8]\n"
            "uaccel_clamp4 r4\n"
            "7: mov r0, r4\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_tap\n" UACCEL_DSP_END_MACROS);
}

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
