/* SVDF and LSTM for Arm's DSP extension. */
#ifndef UACCEL_RECURRENT_DSP_H
#define UACCEL_RECURRENT_DSP_H

#include "uaccel_dots_dsp.h"
#include "uaccel_int16_dsp.h"
#include "uaccel_recurrent.h"

UACCEL_ASSEMBLY_BEGIN

/* stream: of each eight gates and either vector S and B of four pairs, the words of each two inputs, and the multiplier,
 * the rounding's half and the shift, or 0 and the shift to the left. */
UACCEL_ASSEMBLY void uaccel_lstm_gates_dots_dsp(const struct uaccel_lstm_gates *job, const int32_t *stream)
{
    __asm__(UACCEL_DSP_MACROS UACCEL_DSP_EIGHT
            ".macro uaccel_half x\n"
            "smmulr \\x, \\x, r2\n"
            "add \\x, \\x, \\x, asr #31\n"
            "add \\x, \\x, r3\n"
            "asr \\x, \\x, r12\n"
            "ssat \\x, #16, \\x\n"
            ".endm\n"
            ".macro uaccel_left x\n"
            "lsl \\x, \\x, r12\n"
            "smmulr \\x, \\x, r2\n"
            "ssat \\x, #16, \\x\n"
            ".endm\n"
            ".macro uaccel_halves way, x, y\n"
            "uaccel_part \\x, \\y\n"
            "\\way \\x\n"
            "\\way \\y\n"
            "pkhbt \\x, \\x, \\y, lsl #16\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "ldmia r0, {r2-r7}\n"
            "push {r2-r7}\n" /* from sp + 24 on: input, its end, hidden state, its end, gates, how many eights */
            "sub sp, #24\n"
            "1: ldrd r0, r2, [sp, #24]\n"
            "bl 5f\n"
            "stmia sp, {r4, r6, r8, r10}\n"
            "ldrd r0, r2, [sp, #32]\n"
            "bl 5f\n"
            "ldmia sp, {r5, r7, r9, r11}\n"
            "qadd16 r4, r4, r5\n"
            "qadd16 r6, r6, r7\n"
            "qadd16 r8, r8, r9\n"
            "qadd16 r10, r10, r11\n"
            "ldrd r2, r3, [sp, #40]\n"
            "stmia r2!, {r4, r6, r8, r10}\n"
            "subs r3, #1\n"
            "strd r2, r3, [sp, #40]\n"
            "bne 1b\n"
            "add sp, #48\n"
            "pop {r4-r11, pc}\n"
            /* eight sums over the bytes from r0 to r2 */
            "5: strd r2, lr, [sp, #16]\n"
            "ldmia r1!, {r4-r11}\n"
            "sub r2, r2, r0\n"
            "tst r2, #4\n"
            "bne 7f\n"
            "6: uaccel_steps\n"
            "7: uaccel_steps\n"
            "ldr lr, [sp, #16]\n"
            "cmp r0, lr\n"
            "bne 6b\n"
            "ldmia r1!, {r2, r3, r12}\n"
            "cmp r3, #0\n"
            "beq 8f\n"
            "uaccel_halves uaccel_half, r4, r5\n"
            "uaccel_halves uaccel_half, r6, r7\n"
            "uaccel_halves uaccel_half, r8, r9\n"
            "uaccel_halves uaccel_half, r10, r11\n"
            "ldr pc, [sp, #20]\n"
            "8: uaccel_halves uaccel_left, r4, r5\n"
            "uaccel_halves uaccel_left, r6, r7\n"
            "uaccel_halves uaccel_left, r8, r9\n"
            "uaccel_halves uaccel_left, r10, r11\n"
            "ldr pc, [sp, #20]\n"
            UACCEL_PURGE("uaccel_half, uaccel_left, uaccel_halves") UACCEL_DSP_END_EIGHT UACCEL_DSP_END_MACROS);
}

UACCEL_ASSEMBLY_END

/* LSTM on int16 vectors for Arm's DSP extension. */
struct uaccel_lstm_dsp16 {
    struct uaccel_lstm layer;
    struct uaccel_fully_connected_dsp16 given, kept; /* all gates' sums of an input and of a hidden state */
};

#define UACCEL_DOTS(name) name##_dots_dsp
#define UACCEL_SHOW_PRODUCT(x, multiplier) uaccel_dsp_high(2 * (x), multiplier)
#define UACCEL_LSTM16(name) name##_dsp16
#define UACCEL_LSTM16_ROW uaccel_fully_connected_dsp_s16
#include "uaccel_recurrent_scalar_body.h"

#endif
