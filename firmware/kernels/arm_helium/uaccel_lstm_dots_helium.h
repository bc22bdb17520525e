/* LSTM for Arm Helium: eight units at a time. */
#ifndef UACCEL_LSTM_DOTS_HELIUM_H
#define UACCEL_LSTM_DOTS_HELIUM_H

#include "uaccel_lstm_dots.h"
#include "uaccel_lstm_show_helium.h"

UACCEL_ASSEMBLY_BEGIN

/* stream: of each eight gates and either vector, even ones first, their biases; for each 16 inputs their weights; their
 * multiplier and their shift. */
UACCEL_ASSEMBLY void uaccel_lstm_gates_dots_helium(const struct uaccel_lstm_gates *job, const int32_t *stream)
{
    __asm__(UACCEL_HELIUM_MACROS UACCEL_HELIUM_ROWS
            ".macro uaccel_part at\n"
            "ldrd r3, r11, [r9, #\\at]\n"
            "ldmia r1!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
            "2: uaccel_rows\n"
            "cmp r3, r11\n"
            "bne 2b\n"
            "uaccel_gather r0, r2, r4, r6, r8, r10, r12, lr\n"
            "ldrd r2, r4, [r1], #8\n"
            "cmp r4, #0\n"
            "bge 3f\n"
            "vqrdmulh.s32 q0, q0, r2\n"
            "vqrdmulh.s32 q1, q1, r2\n"
            "vshr.s32 q2, q0, #31\n"
            "vqadd.s32 q0, q0, q2\n"
            "vshr.s32 q2, q1, #31\n"
            "vqadd.s32 q1, q1, q2\n"
            "vrshl.s32 q0, r4\n"
            "vrshl.s32 q1, r4\n"
            "b 4f\n"
            "3: vshl.s32 q0, r4\n"
            "vshl.s32 q1, r4\n"
            "vqrdmulh.s32 q0, q0, r2\n"
            "vqrdmulh.s32 q1, q1, r2\n"
            "4:\n"
            "vqmovnb.s32 q0, q0\n"
            "vqmovnt.s32 q0, q1\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "mov r9, r0\n"
            "ldrd r5, r7, [r0, #16]\n"
            "1: uaccel_part 0\n"
            "vmov q3, q0\n"
            "uaccel_part 8\n"
            "vqadd.s16 q0, q0, q3\n"
            "subs r7, #1\n"
            "vstrh.16 q0, [r5], #16\n"
            "bne 1b\n"
            "pop {r4-r11, pc}\n"
            UACCEL_PURGE("uaccel_two, uaccel_rows, uaccel_part") UACCEL_HELIUM_END_MACROS);
}

UACCEL_ASSEMBLY_END

#define UACCEL_DOTS(name) name##_dots_helium
#define uaccel_lstm_show_dots_helium uaccel_lstm_show_helium_s8
#include "uaccel_lstm_dots_body.h"
#undef uaccel_lstm_show_dots_helium
#undef UACCEL_DOTS

#endif
