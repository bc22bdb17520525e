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
#error "made for Arm's DSP extension: name the CPU to the compiler (-mcpu=cortex-m4), or compile for another --board"
#endif
#include <arm_acle.h>

/* A number as text, for the assembler. */
#define UACCEL_TEXT_OF(number) #number
#define UACCEL_TEXT(number) UACCEL_TEXT_OF(number)

/* A word at any address. */
UACCEL_KERNEL uint32_t uaccel_dsp_load(const void *place)
{
    uint32_t word;
    memcpy(&word, place, 4);
    return word;
}

/* Bytes 0 and 2 of a word as halves, and bytes 1 and 3. */
UACCEL_KERNEL uint32_t uaccel_dsp_even(uint32_t word)
{
    uint32_t halves;
    __asm__("sxtb16 %0, %1" : "=r"(halves) : "r"(word));
    return halves;
}

UACCEL_KERNEL uint32_t uaccel_dsp_odd(uint32_t word)
{
    uint32_t halves;
    __asm__("sxtb16 %0, %1, ror #8" : "=r"(halves) : "r"(word));
    return halves;
}

/* The same, added to the halves of a sum in its place. */
UACCEL_KERNEL uint32_t uaccel_dsp_add_even(uint32_t sum, uint32_t word)
{
    __asm__("sxtab16 %0, %0, %1" : "+r"(sum) : "r"(word));
    return sum;
}

UACCEL_KERNEL uint32_t uaccel_dsp_add_odd(uint32_t sum, uint32_t word)
{
    __asm__("sxtab16 %0, %0, %1, ror #8" : "+r"(sum) : "r"(word));
    return sum;
}

/* round(a * b / 2^32), halves upwards. */
UACCEL_KERNEL int32_t uaccel_dsp_high(int32_t a, int32_t b)
{
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(a), "r"(b));
    return high;
}

/* A value of the type `lowest` to `highest` within the bounds; those of the type itself take no instruction. */
UACCEL_KERNEL int32_t uaccel_dsp_bounded(int32_t value, int32_t clamp_min, int32_t clamp_max, int32_t lowest,
                                         int32_t highest)
{
    if (clamp_min > lowest) {
        value = value < clamp_min ? clamp_min : value;
    }
    if (clamp_max < highest) {
        value = value > clamp_max ? clamp_max : value;
    }
    return value;
}

/* The output stage. Of a channel the stream holds {multiplier, offset, shift}: offset is the rounding's half and the
 * zero point, both times 2^shift. */
struct uaccel_dsp_finish {
    int32_t sign;            /* 1: a negative tie is rounded down; 0: it ends below clamp_min, either way */
    int32_t clamp;           /* 1: clamp to the bounds below; 0: to int8 alone */
    uint32_t lowest, highest; /* the bounds, in each byte */
};
UACCEL_AT4(uaccel_dsp_finish, 0, sign, clamp, lowest, highest);

/* That of uaccel_dsp_2x4. Of four channels the stream holds a word with the shift less one of each, and four multipliers;
 * those of the second of a pair are doubled and 2^32 less, and the sum is added. */
struct uaccel_dsp_quads {
    int32_t flags;   /* 1: a negative tie is rounded down, as above; 2: twice a result may need more than 16 bits; 4: clamp */
    uint32_t offset; /* in each half: 2 (zero point + 128) + 1 */
    uint32_t lowest, highest; /* the bounds, in each byte */
};
UACCEL_AT4(uaccel_dsp_quads, 0, flags, offset, lowest, highest);

/* Where the kernels keep what does not fit their registers: slots 2 to 15, in the FPU where there is one, which takes a
 * cycle, otherwise on the stack. uaccel_slots fills 4 to 14 from r12 on and 15 from r1; without an FPU it uses r2 to r8. */
#if defined(__ARM_FP)
#define UACCEL_DSP_SLOTS                                                                                             \
    ".macro uaccel_slots\n"                                                                                          \
    "vldmia r12, {s4-s14}\n"                                                                                         \
    "vmov s15, r1\n"                                                                                                 \
    ".endm\n"                                                                                                        \
    ".macro uaccel_recall r, slot\n"                                                                                 \
    "vmov \\r, s\\slot\n"                                                                                           \
    ".endm\n"                                                                                                        \
    ".macro uaccel_keep r, slot\n"                                                                                   \
    "vmov s\\slot, \\r\n"                                                                                           \
    ".endm\n"                                                                                                        \
    ".macro uaccel_frame\n"                                                                                          \
    ".endm\n"                                                                                                        \
    ".macro uaccel_leave\n"                                                                                          \
    "pop {r4-r11, pc}\n"                                                                                             \
    ".endm\n"
#else
#define UACCEL_DSP_SLOTS                                                                                             \
    ".macro uaccel_frame\n"                                                                                          \
    "sub sp, #56\n"                                                                                                  \
    ".endm\n"                                                                                                        \
    ".macro uaccel_slots\n"                                                                                          \
    "uaccel_frame\n"                                                                                                 \
    "add r8, sp, #8\n"                                                                                               \
    "ldmia r12!, {r2-r7}\n"                                                                                          \
    "stmia r8!, {r2-r7}\n"                                                                                           \
    "ldmia r12!, {r2-r6}\n"                                                                                          \
    "stmia r8!, {r2-r6}\n"                                                                                           \
    "str r1, [r8]\n"                                                                                                 \
    ".endm\n"                                                                                                        \
    ".macro uaccel_recall r, slot\n"                                                                                 \
    "ldr \\r, [sp, #4 * (\\slot - 2)]\n"                                                                            \
    ".endm\n"                                                                                                        \
    ".macro uaccel_keep r, slot\n"                                                                                   \
    "str \\r, [sp, #4 * (\\slot - 2)]\n"                                                                            \
    ".endm\n"                                                                                                        \
    ".macro uaccel_leave\n"                                                                                          \
    "add sp, #56\n"                                                                                                  \
    "pop {r4-r11, pc}\n"                                                                                             \
    ".endm\n"
#endif

#define UACCEL_DSP_END_SLOTS   \
    UACCEL_PURGE("uaccel_slots, uaccel_frame, uaccel_recall, uaccel_keep, uaccel_leave")

/* uaccel_scale and uaccel_shift: sums that come doubled, by the constants of one channel; way 0 and 1 are without and
 * with `sign`, which is that of a sum: a product that is rounded to nought ends as the zero point, with it or without.
 * Way 1 uses r0. Way 2 is single precision, where the constants are half the scale, the zero point and twice what is
 * added to the sum, which lies `rest` bytes from r1; it uses s0 to s2. uaccel_round1 reads the constants of each sum, or
 * leaves them in r2, r3 and r12 and uses lr. */
#define UACCEL_DSP_MACROS                                                                                            \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_scale a, b, multiplier, offset, rest, way\n"                                                      \
    ".if \\way == 2\n"                                                                                              \
    "vmov s0, s1, \\a, \\b\n"                                                                                       \
    "vcvt.f32.s32 s0, s0\n"                                                                                          \
    "vcvt.f32.s32 s1, s1\n"                                                                                          \
    "vldr s2, [r1, #\\rest]\n"                                                                                       \
    "vadd.f32 s0, s0, s2\n"                                                                                          \
    "vadd.f32 s1, s1, s2\n"                                                                                          \
    "vmov s2, \\multiplier\n"                                                                                        \
    "vmul.f32 s0, s0, s2\n"                                                                                          \
    "vmul.f32 s1, s1, s2\n"                                                                                          \
    "vcvtr.s32.f32 s0, s0\n"                                                                                         \
    "vcvtr.s32.f32 s1, s1\n"                                                                                         \
    "vmov \\a, \\b, s0, s1\n"                                                                                       \
    "qadd \\a, \\a, \\offset\n"                                                                                    \
    "qadd \\b, \\b, \\offset\n"                                                                                    \
    ".elseif \\way\n"                                                                                               \
    "add r0, \\offset, \\a, asr #31\n"                                                                               \
    "smmlar \\a, \\a, \\multiplier, r0\n"                                                                            \
    "add \\offset, \\offset, \\b, asr #31\n"                                                                         \
    "smmlar \\b, \\b, \\multiplier, \\offset\n"                                                                      \
    ".else\n"                                                                                                        \
    "smmlar \\a, \\a, \\multiplier, \\offset\n"                                                                    \
    "smmlar \\b, \\b, \\multiplier, \\offset\n"                                                                    \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    ".macro uaccel_shift a, b, shift, way\n"                                                                         \
    ".if \\way < 2\n"                                                                                               \
    "asr \\a, \\a, \\shift\n"                                                                                      \
    "asr \\b, \\b, \\shift\n"                                                                                      \
    ".endif\n"                                                                                                       \
    "ssat \\a, #8, \\a\n"                                                                                           \
    "ssat \\b, #8, \\b\n"                                                                                           \
    ".endm\n"                                                                                                        \
    ".macro uaccel_round1 a, sign, each=1\n"                                                                         \
    ".if \\each\n"                                                                                                   \
    "ldmia r1!, {r2, r3, r12}\n"                                                                                     \
    ".endif\n"                                                                                                       \
    ".if \\sign == 2\n"                                                                                              \
    "vmov s0, \\a\n"                                                                                                 \
    "vcvt.f32.s32 s0, s0\n"                                                                                          \
    "vmov s2, r12\n"                                                                                                 \
    "vadd.f32 s0, s0, s2\n"                                                                                          \
    "vmov s2, r2\n"                                                                                                  \
    "vmul.f32 s0, s0, s2\n"                                                                                          \
    "vcvtr.s32.f32 s0, s0\n"                                                                                         \
    "vmov \\a, s0\n"                                                                                                 \
    "qadd \\a, \\a, r3\n"                                                                                            \
    ".elseif \\sign && !\\each\n"                                                                                    \
    "add lr, r3, \\a, asr #31\n"                                                                                     \
    "smmlar \\a, \\a, r2, lr\n"                                                                                      \
    ".elseif \\sign\n"                                                                                               \
    "add r3, r3, \\a, asr #31\n"                                                                                     \
    "smmlar \\a, \\a, r2, r3\n"                                                                                      \
    ".else\n"                                                                                                        \
    "smmlar \\a, \\a, r2, r3\n"                                                                                      \
    ".endif\n"                                                                                                       \
    ".if \\sign < 2\n"                                                                                               \
    "asr \\a, \\a, r12\n"                                                                                            \
    ".endif\n"                                                                                                       \
    "ssat \\a, #8, \\a\n"                                                                                            \
    ".endm\n"                                                                                                        \
    /* A of a pair from S and B, and both twice their value */                                                       \
    ".macro uaccel_part s, b, apart=0\n"                                                                             \
    ".if !\\apart\n"                                                                                                 \
    "sub \\s, \\s, \\b\n"                                                                                            \
    "asr \\s, \\s, #7\n"                                                                                             \
    ".endif\n"                                                                                                       \
    "lsl \\b, \\b, #1\n"                                                                                             \
    ".endm\n"                                                                                                        \
    /* Deep sums: struct uaccel_dsp_deep lies `at` bytes behind the job, whose address is in slot 3. Twice the bias of A\
     * is a part at first, and S begins without it. At an end twice A is added to the part, and S begins anew; the last\
     * end makes S of the part. */                                                                                   \
    ".macro uaccel_begin at, s0, b0, s1, b1, s2, b2, s3, b3\n"                                                       \
    "uaccel_recall r12, 3\n"                                                                                         \
    "add r12, #\\at\n"                                                                                               \
    "stmia r12, {\\s0, \\s1, \\s2, \\s3}\n"                                                                          \
    "mov \\s0, \\b0\n"                                                                                               \
    "mov \\s1, \\b1\n"                                                                                               \
    "mov \\s2, \\b2\n"                                                                                               \
    "mov \\s3, \\b3\n"                                                                                               \
    ".endm\n"                                                                                                        \
    ".macro uaccel_apart s, b\n"                                                                                     \
    "ldr r2, [r12]\n"                                                                                                \
    "sub \\s, \\s, \\b\n"                                                                                            \
    "add r2, r2, \\s, asr #7\n"                                                                                      \
    "str r2, [r12], #4\n"                                                                                            \
    "mov \\s, \\b\n"                                                                                                 \
    ".endm\n"                                                                                                        \
    ".macro uaccel_fold at, loop, s0, b0, s1, b1, s2, b2, s3, b3\n"                                                  \
    "uaccel_recall r12, 3\n"                                                                                         \
    "add r12, #\\at\n"                                                                                               \
    "uaccel_apart \\s0, \\b0\n"                                                                                      \
    "uaccel_apart \\s1, \\b1\n"                                                                                      \
    "uaccel_apart \\s2, \\b2\n"                                                                                      \
    "uaccel_apart \\s3, \\b3\n"                                                                                      \
    "ldmia r12!, {r2, r3}\n"                                                                                         \
    "add r3, r0\n"                                                                                                   \
    "cmp r0, r2\n"                                                                                                   \
    "it eq\n"                                                                                                        \
    "ldreq r3, [r12]\n"                                                                                              \
    "uaccel_keep r3, 5\n"                                                                                            \
    "bne \\loop\n"                                                                                                   \
    "sub r12, #24\n"                                                                                                 \
    "ldmia r12, {\\s0, \\s1, \\s2, \\s3}\n"                                                                          \
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
    UACCEL_PURGE("uaccel_scale, uaccel_shift, uaccel_round1, uaccel_part, uaccel_begin, uaccel_apart, uaccel_fold, "     \
                 "uaccel_pack, uaccel_clamp4")

/* Four inputs at r0 with the weights of eight channels at r1, into r4 to r11: S and B of each pair. uaccel_steps has fewer
 * instructions, uaccel_rows fewer cycles: loads in a row take turns. */
#define UACCEL_DSP_EIGHT                \
    ".macro uaccel_products x, a, b, c, d\n" \
    "smlad \\a, \\x, r12, \\a\n"         \
    "sxtb16 r12, r12\n"                 \
    "smlad \\c, \\x, lr, \\c\n"          \
    "sxtb16 lr, lr\n"                   \
    "smlad \\b, \\x, r12, \\b\n"         \
    "smlad \\d, \\x, lr, \\d\n"          \
    ".endm\n"                           \
    ".macro uaccel_inputs\n"            \
    "sxtb16 r3, r2, ror #8\n"           \
    "sxtb16 r2, r2\n"                   \
    ".endm\n"                           \
    ".macro uaccel_steps\n"             \
    "ldr r2, [r0], #4\n"                \
    "uaccel_inputs\n"                   \
    ".irp x, r2, r3\n"                  \
    "ldmia r1!, {r12, lr}\n"            \
    "uaccel_products \\x, r4, r5, r6, r7\n" \
    "ldmia r1!, {r12, lr}\n"            \
    "uaccel_products \\x, r8, r9, r10, r11\n" \
    ".endr\n"                           \
    ".endm\n"                           \
    ".macro uaccel_rows\n"              \
    "ldr r2, [r0], #4\n"                \
    "ldr lr, [r1, #4]\n"                \
    "ldr r12, [r1], #32\n"              \
    "uaccel_inputs\n"                   \
    "uaccel_products r2, r4, r5, r6, r7\n" \
    "ldrd r12, lr, [r1, #-24]\n"        \
    "uaccel_products r2, r8, r9, r10, r11\n" \
    "ldrd r12, lr, [r1, #-16]\n"        \
    "uaccel_products r3, r4, r5, r6, r7\n" \
    "ldrd r12, lr, [r1, #-8]\n"         \
    "uaccel_products r3, r8, r9, r10, r11\n" \
    ".endm\n"

#define UACCEL_DSP_END_EIGHT      \
    UACCEL_PURGE("uaccel_products, uaccel_inputs, uaccel_steps, uaccel_rows")

/* All of uaccel_dsp_1x8. each: whether the stream has the constants of each unit's output stage, "0" or "1"; deep: whether
 * a struct uaccel_dsp_deep is behind the job. */
#define UACCEL_DSP_ROW(each, deep)                                                            \
    UACCEL_DSP_MACROS UACCEL_DSP_SLOTS UACCEL_DSP_EIGHT                                       \
    ".macro uaccel_finish way\n"                                                              \
    ".if !" each "\n"                                                                         \
    "uaccel_recall r2, 11\n"                                                                  \
    "uaccel_recall r3, 12\n"                                                                  \
    "uaccel_recall r12, 13\n"                                                                 \
    ".endif\n"                                                                                \
    ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"                                            \
    "uaccel_round1 \\sum, \\way, " each "\n"                                                  \
    ".endr\n"                                                                                 \
    ".endm\n"                                                                                 \
    "push {r4-r11, lr}\n"                                                                     \
    "mov r12, r0\n"                                                                           \
    "uaccel_slots\n"                                                                          \
    ".if " deep "\n"                                                                          \
    "uaccel_keep r0, 3\n"                                                                     \
    ".endif\n"                                                                                \
    "uaccel_recall r2, 6\n"                                                                   \
    "adr r3, 3f\n"                                                                            \
    "sub r3, r3, r2\n"                                                                        \
    "orr r3, #1\n"                                                                            \
    "uaccel_keep r3, 6\n"                                                                     \
    "1: uaccel_recall r0, 4\n"                                                                \
    "ldmia r1!, {r4-r11}\n"                                                                   \
    ".if " deep "\n"                                                                          \
    "uaccel_begin 44, r4, r5, r6, r7, r8, r9, r10, r11\n"                                     \
    ".endif\n"                                                                                \
    "uaccel_recall r12, 6\n"                                                                  \
    "bx r12\n"                                                                                \
    "2: .rept 4\n"                                                                            \
    "uaccel_rows\n"                                                                           \
    ".endr\n"                                                                                 \
    ".org 2b + 4 * 128\n"                                                                     \
    "3: uaccel_recall r12, 5\n"                                                               \
    "cmp r0, r12\n"                                                                           \
    "bne 2b\n"                                                                                \
    ".if " deep "\n"                                                                          \
    "uaccel_fold 44, 2b, r4, r5, r6, r7, r8, r9, r10, r11\n"                                  \
    ".endif\n"                                                                                \
    "uaccel_part r4, r5, " deep "\n"                                                          \
    "uaccel_part r6, r7, " deep "\n"                                                          \
    "uaccel_part r8, r9, " deep "\n"                                                          \
    "uaccel_part r10, r11, " deep "\n"                                                        \
    "uaccel_recall r0, 7\n"                                                                   \
    "lsls r2, r0, #31\n"                                                                      \
    "bne 7f\n"                                                                                \
    "uaccel_finish " UACCEL_DSP_PLAIN "\n"                                                    \
    "4: uaccel_pack r4, r5, r6, r7\n"                                                         \
    "uaccel_pack r8, r9, r10, r11\n"                                                          \
    "lsrs r0, r0, #1\n"                                                                       \
    "bne 8f\n"                                                                                \
    "5: uaccel_recall r2, 9\n"                                                                \
    "uaccel_recall r3, 10\n"                                                                  \
    "subs r3, #8\n"                                                                           \
    "blt 6f\n"                                                                                \
    "str r4, [r2], #4\n"                                                                      \
    "str r8, [r2], #4\n"                                                                      \
    "uaccel_keep r2, 9\n"                                                                     \
    "uaccel_keep r3, 10\n"                                                                    \
    "bne 1b\n"                                                                                \
    "uaccel_leave\n"                                                                          \
    "6: add r3, #8\n"                                                                         \
    "9: strb r4, [r2], #1\n"                                                                  \
    "lsr r4, r4, #8\n"                                                                        \
    "orr r4, r4, r8, lsl #24\n"                                                               \
    "lsr r8, r8, #8\n"                                                                        \
    "subs r3, #1\n"                                                                           \
    "bne 9b\n"                                                                                \
    "uaccel_leave\n"                                                                          \
    "7:\n"                                                                                    \
    ".if " UACCEL_DSP_SIGN " < 2\n"                                                           \
    "uaccel_finish " UACCEL_DSP_SIGN "\n"                                                     \
    "b 4b\n"                                                                                  \
    ".endif\n"                                                                                \
    "8: uaccel_recall r12, 8\n"                                                               \
    "ldrd r2, r3, [r12, #8]\n"                                                                \
    "uaccel_clamp4 r4\n"                                                                      \
    "uaccel_clamp4 r8\n"                                                                      \
    "b 5b\n"                                                                                  \
    ".purgem uaccel_finish\n" UACCEL_DSP_END_EIGHT UACCEL_DSP_END_SLOTS UACCEL_DSP_END_MACROS

UACCEL_ASSEMBLY_BEGIN

/* What uaccel_dsp_2x4 works on: the windows of two pixels, `rows` times `words` words of bytes, widened one in turn
 * with the other into `patches`, and all of their output channels; then the next two. It counts in `a`, `b`, `pairs`. */
struct uaccel_dsp_job {
    const int8_t *a, *b;
    int16_t *patches;
    const int16_t *end; /* of the patches */
    uaccel_index entry; /* bytes of code from where the loop is entered to its end */
    int32_t flags;      /* as in struct uaccel_dsp_quads */
    const struct uaccel_dsp_quads *finish;
    int8_t *first;           /* the result of pixel a */
    uaccel_index difference; /* bytes from there to that of pixel b */
    const int32_t *stop;     /* where the stream ends */
    uaccel_index words;
    uaccel_index over_a, over_b; /* bytes from a row's end to the next row */
    uaccel_index rows;           /* 0: the patches are there */
    uaccel_index pairs;          /* of pixels, one at least */
    uaccel_index advance;        /* bytes from a pair's windows to the next */
    uaccel_index onward;         /* bytes from the last channel of `first` to the next pair */
    int8_t *copy_a, *copy_b;     /* where windows whose rows end amid a word are copied first, or NULL */
    uaccel_index run, step;      /* bytes of such a row, and from one to the next */
    uaccel_index height;         /* how many there are */
    uaccel_index patch_step;     /* where the patches are there: bytes from those of the pair before to a pair's */
};
UACCEL_AT4(uaccel_dsp_job, 0, a, b, patches, end);
UACCEL_AT4(uaccel_dsp_job, 16, entry, flags, finish, first);
UACCEL_AT4(uaccel_dsp_job, 32, difference, stop, words, over_a);
UACCEL_AT4(uaccel_dsp_job, 48, over_b, rows, pairs, advance);
UACCEL_AT4(uaccel_dsp_job, 64, onward, copy_a, copy_b, run);
UACCEL_AT(uaccel_dsp_job, step, 80);
UACCEL_AT(uaccel_dsp_job, height, 84);
UACCEL_AT(uaccel_dsp_job, patch_step, 88);

/* What uaccel_dsp_1x8 works on. */
struct uaccel_dsp_row {
    const int8_t *row, *end; /* bytes, a multiple of four */
    uaccel_index entry;      /* as in struct uaccel_dsp_job */
    int32_t flags; /* 1: sign, 2: clamp, as in struct uaccel_dsp_finish */
    const struct uaccel_dsp_finish *finish;
    int8_t *output;
    uaccel_index units;
    int32_t multiplier, offset, shift; /* of uaccel_dsp_1x8_alike */
    uaccel_index unused[1];            /* of the slots */
};
UACCEL_AT4(uaccel_dsp_row, 0, row, end, entry, flags);
UACCEL_AT4(uaccel_dsp_row, 16, finish, output, units, multiplier);
UACCEL_AT(uaccel_dsp_row, offset, 32);
UACCEL_AT(uaccel_dsp_row, shift, 36);
UACCEL_AT(uaccel_dsp_row, unused, 40);

/* What uaccel_dsp_depthwise works on. */
struct uaccel_dsp_depthwise_job {
    const int8_t *const *taps; /* addresses of the pixels under the window */
    uaccel_index entry;        /* as in struct uaccel_dsp_job */
    const int8_t *const *end;  /* one behind the last tap's end, since the next address is read ahead */
    int32_t flags; /* as in struct uaccel_dsp_row */
    const struct uaccel_dsp_finish *finish;
    int8_t *output;
    uaccel_index last;      /* channel of which four are left */
    uaccel_index unused[5]; /* of the slots */
};
UACCEL_AT4(uaccel_dsp_depthwise_job, 0, taps, entry, end, flags);
UACCEL_AT4(uaccel_dsp_depthwise_job, 16, finish, output, last, unused);

/* Where sums are too deep for 24 bits, behind a job: twice the sums A of four pairs so far, and the ends of the inputs,
 * a number of bytes apart, of which the job has the first. The stream begins with that number, and has twice the bias
 * of A in place of S at the start. */
struct uaccel_dsp_deep {
    int32_t parts[4];
    const void *last;
    uaccel_index apart;
    const void *first;
};
UACCEL_AT(uaccel_dsp_deep, parts, 0);
UACCEL_AT(uaccel_dsp_deep, last, 16);
UACCEL_AT(uaccel_dsp_deep, apart, 20);
UACCEL_AT(uaccel_dsp_deep, first, 24);

struct uaccel_dsp_deep_job {
    struct uaccel_dsp_job job;
    struct uaccel_dsp_deep deep;
};
UACCEL_AT(uaccel_dsp_deep_job, deep, 92);

/* Where assembly finds fields of a job, of what is behind a deep one, and of the output stage. */
#define UACCEL_DSP_JOB                 \
    ".equ uaccel_job_patches, 8\n"     \
    ".equ uaccel_job_end, 12\n"        \
    ".equ uaccel_job_flags, 20\n"      \
    ".equ uaccel_job_finish, 24\n"     \
    ".equ uaccel_job_first, 28\n"      \
    ".equ uaccel_job_last, 92 + 16\n"  \
    ".equ uaccel_quads_lowest, 8\n"

struct uaccel_dsp_deep_row {
    struct uaccel_dsp_row job;
    struct uaccel_dsp_deep deep;
};
UACCEL_AT(uaccel_dsp_deep_row, deep, 44);

/* The ends of so many bytes, the last of them at `last`. */
UACCEL_KERNEL struct uaccel_dsp_deep uaccel_dsp_ends(const void *last, uaccel_index bytes, uaccel_index apart)
{
    return (struct uaccel_dsp_deep){{0, 0, 0, 0}, last, apart, (const int8_t *)last - (bytes - 1) / apart * apart};
}

enum { UACCEL_DSP_TAP = 34 };  /* bytes of code of a tap of uaccel_dsp_depthwise, of which its loop has four */
enum { UACCEL_DSP_STEPS = 128 }; /* of code of a word of inputs of uaccel_dsp_1x8, of which its loop has four */
/* How a step of uaccel_dsp_2x4 begins, and its bytes of code. Two words at once suit a core that issues an instruction at a
 * time; one that issues two (UACCEL_DUAL_ISSUE) loads beside products. */
#if defined(UACCEL_DUAL_ISSUE)
#define UACCEL_DSP_STEP 54
#define UACCEL_DSP_LOADS           \
    "ldr r12, [r1], #4\n"          \
    "ldr r3, [r0, #4]\n"           \
    "ldr r2, [r0], #8\n"           \
    "smlad r5, r3, r12, r5\n"      \
    "ldr lr, [r1], #4\n"           \
    "smlad r4, r2, r12, r4\n"
#else
#define UACCEL_DSP_STEP 46
#define UACCEL_DSP_LOADS           \
    "ldmia r0!, {r2, r3}\n"        \
    "ldmia r1!, {r12, lr}\n"       \
    "smlad r4, r2, r12, r4\n"      \
    "smlad r5, r3, r12, r5\n"
#endif
enum { UACCEL_DSP_LOOP = 24 }; /* steps that its loop has */

#define UACCEL_BODY "uaccel_dsp_body.h"
#define UACCEL_NEEDS_FPU
#define UACCEL_DEEP_TOO
#include "uaccel_roundings.h"

UACCEL_ASSEMBLY_END

#endif
