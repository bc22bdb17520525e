/* Loops of depthwise convolution for Arm Helium in which the last steps of eight windows stand amid the products of the
 * next eight, and those of a channel amid the next channel's. */
#ifndef UACCEL_HELIUM_PLANES_TURNS_H
#define UACCEL_HELIUM_PLANES_TURNS_H

#include "uaccel_helium.h"

/* r8 and r9: multiplier and shift; r10: one, where ties are rounded down if negative. To add a product by one, doubled and
 * rounded down to its upper half, is to take one from what is negative. */
#define UACCEL_HELIUM_TURN_STEPS(sign)                                                                               \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_scaled q\n"                                                                                       \
    ".if " #sign " >= 2\n"                                                                                           \
    "vcvt.f32.s32 \\q, \\q\n"                                                                                        \
    ".if " #sign " == 3\n"                                                                                           \
    "vadd.f32 \\q, \\q, r9\n"                                                                                        \
    ".endif\n"                                                                                                       \
    "vmul.f32 \\q, \\q, r8\n"                                                                                        \
    "vcvtn.s32.f32 \\q, \\q\n"                                                                                       \
    ".else\n"                                                                                                        \
    "vqrdmulh.s32 \\q, \\q, r8\n"                                                                                    \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    ".macro uaccel_tie q\n"                                                                                          \
    ".if " #sign " == 1\n"                                                                                           \
    "vqdmlah.s32 \\q, \\q, r10\n"                                                                                    \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    ".macro uaccel_right q\n"                                                                                        \
    ".if " #sign " < 2\n"                                                                                            \
    "vrshl.s32 \\q, r9\n"                                                                                            \
    ".endif\n"                                                                                                       \
    ".endm\n"

#define UACCEL_HELIUM_END_TURN_STEPS ".purgem uaccel_scaled\n.purgem uaccel_tie\n.purgem uaccel_right\n"

/* Two loads for four windows, which are most: the first four sums of the next place are made amid the last steps of this
 * one, and those of the next channel amid the last steps of its last place; of the last channel, once more its own. */
#define UACCEL_HELIUM_PLANES_IN_TURN(name, loads, sign, clamp)                                                       \
    UACCEL_ASSEMBLY void name(struct uaccel_helium_planes *job, const int32_t *stream)                               \
    {                                                                                                                \
        __asm__(UACCEL_HELIUM_TURN_STEPS(sign)                                                                       \
                ".macro uaccel_eight last\n"                                                                         \
                "vmov q0[2], q0[0], r0, r4\n"                                                                        \
                "add r11, r3\n"                                                                                      \
                "vldrb.u8 q7, [r11, q4]\n"                                                                           \
                "vmov q0[3], q0[1], r2, r6\n"                                                                        \
                "add r12, r1\n"                                                                                      \
                "vldrb.u8 q1, [r11, q3]\n"                                                                           \
                "vmladav.s8 r4, q7, q5\n"                                                                            \
                "vadd.i32 q0, q0, r7\n"                                                                              \
                ".if \\last\n"                                                                                       \
                "ldr lr, [sp, #4]\n"                                                                                 \
                "vmladav.s8 r0, q1, q5\n"                                                                            \
                "subs lr, #1\n"                                                                                      \
                "str lr, [sp, #4]\n"                                                                                 \
                "uaccel_scaled q0\n"                                                                                 \
                "ldrd lr, r5, [sp, #8]\n"                                                                            \
                "it ne\n"                                                                                            \
                "addne r3, lr\n"                                                                                     \
                "ldr r11, [r5], #4\n"                                                                                \
                ".else\n"                                                                                            \
                "vmladav.s8 r0, q1, q5\n"                                                                            \
                "ldr r11, [r5], #4\n"                                                                                \
                "uaccel_scaled q0\n"                                                                                 \
                ".endif\n"                                                                                           \
                "vmladav.s8 r6, q7, q6\n"                                                                            \
                "uaccel_tie q0\n"                                                                                    \
                "add r11, r3\n"                                                                                      \
                "vmladav.s8 r2, q1, q6\n"                                                                            \
                "uaccel_right q0\n"                                                                                  \
                "vldrb.u8 q7, [r11, q4]\n"                                                                           \
                ".if \\last\n"                                                                                       \
                "ldr lr, [sp]\n"                                                                                     \
                "it eq\n"                                                                                            \
                "subeq lr, #44\n"                                                                                    \
                ".endif\n"                                                                                           \
                "vmov q1[2], q1[0], r0, r4\n"                                                                        \
                ".if \\last\n"                                                                                       \
                "vldrw.u32 q5, [lr], #16\n"                                                                          \
                ".endif\n"                                                                                           \
                "vqmovnb.s32 q0, q0\n"                                                                               \
                ".if \\last\n"                                                                                       \
                "vldrw.u32 q6, [lr], #16\n"                                                                          \
                ".endif\n"                                                                                           \
                "vmladav.s8 r4, q7, q5\n"                                                                            \
                "vmov q1[3], q1[1], r2, r6\n"                                                                        \
                "vmladav.s8 r6, q7, q6\n"                                                                            \
                "vldrb.u8 q7, [r11, q3]\n"                                                                           \
                "vadd.i32 q1, q1, r7\n"                                                                              \
                "uaccel_scaled q1\n"                                                                                 \
                "uaccel_tie q1\n"                                                                                    \
                "vmladav.s8 r0, q7, q5\n"                                                                            \
                "uaccel_right q1\n"                                                                                  \
                "vqmovnt.s32 q0, q1\n"                                                                               \
                "vmladav.s8 r2, q7, q6\n"                                                                            \
                ".if \\last\n"                                                                                       \
                "ldmia lr!, {r7, r8, r9}\n"                                                                          \
                "str lr, [sp]\n"                                                                                     \
                ".endif\n"                                                                                           \
                ".if " #sign " == 1\n"                                                                               \
                "vldrw.u32 q1, [sp, #20]\n"                                                                          \
                "vqadd.s16 q0, q0, q1\n"                                                                             \
                ".else\n"                                                                                            \
                "vqadd.s16 q0, q0, r10\n"                                                                            \
                ".endif\n"                                                                                           \
                ".if \\last\n"                                                                                       \
                "ldr lr, [sp, #16]\n"                                                                                \
                ".endif\n"                                                                                           \
                ".if " #clamp "\n"                                                                                   \
                "vldrw.u32 q1, [sp, #36]\n"                                                                          \
                "vmax.s16 q0, q0, q1\n"                                                                              \
                "vldrw.u32 q1, [sp, #52]\n"                                                                          \
                "vmin.s16 q0, q0, q1\n"                                                                              \
                ".else\n"                                                                                            \
                "vqmovnb.s16 q0, q0\n"                                                                               \
                ".endif\n"                                                                                           \
                "vstrb.16 q0, [r12, q2]\n"                                                                           \
                "ldrd r11, r12, [r5], #8\n"                                                                          \
                ".if \\last\n"                                                                                       \
                "add r1, r1, #1\n"                                                                                   \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                "vpush {d8-d15}\n"                                                                                   \
                "push {r4-r11, lr}\n"                                                                                \
                "sub sp, #68\n" /* stream, channels, bytes of a plane, places, how many but one; zero point, bounds */ \
                "ldr r10, [r0, #24]\n"                                                                               \
                ".if " #sign " == 1\n"                                                                               \
                "vdup.16 q0, r10\n"                                                                                  \
                "vstrw.32 q0, [sp, #20]\n"                                                                           \
                "movs r10, #1\n"                                                                                     \
                ".endif\n"                                                                                           \
                ".if " #clamp "\n"                                                                                   \
                "ldrd r4, r5, [r0, #28]\n"                                                                           \
                "vdup.16 q0, r4\n"                                                                                   \
                "vdup.16 q1, r5\n"                                                                                   \
                "vstrw.32 q0, [sp, #36]\n"                                                                           \
                "vstrw.32 q1, [sp, #52]\n"                                                                           \
                ".endif\n"                                                                                           \
                "vldrw.u32 q2, [r0, #36]\n"                                                                          \
                "ldrd r4, r6, [r0, #8]\n"                                                                            \
                "vldrw.u32 q3, [r0, #52]\n"                                                                          \
                "strd r4, r6, [sp, #4]\n"                                                                            \
                "vldrw.u32 q4, [r0, #68]\n"                                                                          \
                "ldrd r5, lr, [r0, #16]\n"                                                                           \
                "sub lr, #1\n"                                                                                       \
                "strd r5, lr, [sp, #12]\n"                                                                           \
                "ldrd r3, r2, [r0]\n"                                                                                \
                "vldrw.u32 q5, [r1], #16\n"                                                                          \
                "vldrw.u32 q6, [r1], #16\n"                                                                          \
                "ldr r11, [r5], #4\n"                                                                                \
                "ldmia r1!, {r7, r8, r9}\n"                                                                          \
                "str r1, [sp]\n"                                                                                     \
                "add r11, r3\n"                                                                                      \
                "mov r1, r2\n"                                                                                       \
                "vldrb.u8 q7, [r11, q4]\n"                                                                           \
                "vldrb.u8 q1, [r11, q3]\n"                                                                           \
                "vmladav.s8 r4, q7, q5\n"                                                                            \
                "vmladav.s8 r6, q7, q6\n"                                                                            \
                "ldrd r11, r12, [r5], #8\n"                                                                          \
                "vmladav.s8 r0, q1, q5\n"                                                                            \
                "vmladav.s8 r2, q1, q6\n"                                                                            \
                "1: wls lr, lr, 3f\n"                                                                                \
                "2: uaccel_eight 0\n"                                                                                \
                "le lr, 2b\n"                                                                                        \
                "3: uaccel_eight 1\n"                                                                                \
                "bne 1b\n"                                                                                           \
                "add sp, #68\n"                                                                                      \
                "pop {r4-r11, lr}\n"                                                                                 \
                "vpop {d8-d15}\n"                                                                                    \
                "bx lr\n"                                                                                            \
                ".purgem uaccel_eight\n" UACCEL_HELIUM_END_TURN_STEPS);                                              \
    }

/* Windows of one row, without gaps, one beside the other: sixteen bytes each, read where they lie. The first four sums of
 * the next eight are made amid the last steps of these, and those of the next channel amid the last ones of this; of the
 * last channel for nothing. `count`: how many eights there are; `part`: windows of the last one. stream: of each channel
 * its weights, its bias, its multiplier, its shift; and behind the last 28 bytes more. */
#define UACCEL_HELIUM_PLANES_OF_A_ROW(name, loads, sign, clamp)                                                      \
    UACCEL_ASSEMBLY void name(struct uaccel_helium_planes *job, const int32_t *stream)                               \
    {                                                                                                                \
        __asm__(UACCEL_HELIUM_TURN_STEPS(sign)                                                                       \
                ".macro uaccel_eight last\n"                                                                         \
                "vmov q0[2], q0[0], r0, r4\n"                                                                        \
                "vldrb.u8 q7, [r3, #1]\n"                                                                            \
                "vmov q0[3], q0[1], r2, r6\n"                                                                        \
                "vldrb.u8 q6, [r3, #3]\n"                                                                            \
                "vmladav.s8 r0, q7, q5\n"                                                                            \
                "vadd.i32 q0, q0, r7\n"                                                                              \
                "uaccel_scaled q0\n"                                                                                 \
                "vldrb.u8 q7, [r3, #5]\n"                                                                            \
                "uaccel_tie q0\n"                                                                                    \
                "vmladav.s8 r2, q6, q5\n"                                                                            \
                "vldrb.u8 q6, [r3, #7]\n"                                                                            \
                "uaccel_right q0\n"                                                                                  \
                "vmladav.s8 r4, q7, q5\n"                                                                            \
                ".if \\last\n"                                                                                       \
                "add r3, r1\n"                                                                                       \
                ".else\n"                                                                                            \
                "adds r3, #8\n"                                                                                      \
                ".endif\n"                                                                                           \
                "vldrb.u8 q7, [r3]\n"                                                                                \
                "vmladav.s8 r6, q6, q5\n"                                                                            \
                "vmov q1[2], q1[0], r0, r4\n"                                                                        \
                "vldrb.u8 q6, [r3, #2]\n"                                                                            \
                ".if \\last\n"                                                                                       \
                "vldrw.u32 q5, [r5], #16\n"                                                                          \
                ".endif\n"                                                                                           \
                "vmov q1[3], q1[1], r2, r6\n"                                                                        \
                "vmladav.s8 r0, q7, q5\n"                                                                            \
                "vadd.i32 q1, q1, r7\n"                                                                              \
                "uaccel_scaled q1\n"                                                                                 \
                "vldrb.u8 q7, [r3, #4]\n"                                                                            \
                "uaccel_tie q1\n"                                                                                    \
                "vqmovnb.s32 q0, q0\n"                                                                               \
                "vmladav.s8 r2, q6, q5\n"                                                                            \
                "uaccel_right q1\n"                                                                                  \
                "vmladav.s8 r4, q7, q5\n"                                                                            \
                "vqmovnt.s32 q0, q1\n"                                                                               \
                "vldrb.u8 q6, [r3, #6]\n"                                                                            \
                ".if \\last\n"                                                                                       \
                "ldr r7, [sp, #8]\n"                                                                                 \
                "ldrd r8, lr, [sp]\n"                                                                                \
                "cmp r5, r7\n"                                                                                       \
                ".endif\n"                                                                                           \
                "vmladav.s8 r6, q6, q5\n"                                                                            \
                ".if " #sign " != 1\n"                                                                               \
                "vqadd.s16 q0, q0, r10\n"                                                                            \
                ".elseif " #clamp "\n"                                                                               \
                "vldrw.u32 q1, [sp, #12]\n"                                                                          \
                "vqadd.s16 q0, q0, q1\n"                                                                             \
                ".else\n"                                                                                            \
                "vqadd.s16 q0, q0, q3\n"                                                                             \
                ".endif\n"                                                                                           \
                ".if \\last\n"                                                                                       \
                "ldr r7, [r5], #4\n"                                                                                 \
                ".endif\n"                                                                                           \
                ".if " #clamp "\n"                                                                                   \
                "vmax.s16 q0, q0, q3\n"                                                                              \
                "vmin.s16 q0, q0, q4\n"                                                                              \
                ".else\n"                                                                                            \
                "vqmovnb.s16 q0, q0\n"                                                                               \
                ".endif\n"                                                                                           \
                ".if \\last\n"                                                                                       \
                "vpst\n"                                                                                             \
                "vstrbt.16 q0, [r12, q2]\n"                                                                          \
                "add r12, r8\n"                                                                                      \
                "ldrd r8, r9, [r5], #8\n"                                                                            \
                ".else\n"                                                                                            \
                "vstrb.16 q0, [r12, q2]\n"                                                                           \
                "add r12, r11\n"                                                                                     \
                ".endif\n"                                                                                           \
                ".endm\n"                                                                                            \
                "vpush {d8-d15}\n"                                                                                   \
                "push {r4-r11, lr}\n"                                                                                \
                "sub sp, #28\n"                                                                                      \
                "mov r5, r1\n"                                                                                       \
                "ldr r10, [r0, #24]\n"                                                                               \
                ".if " #sign " == 1\n"                                                                               \
                "vdup.16 q3, r10\n"                                                                                  \
                "vstrw.32 q3, [sp, #12]\n"                                                                           \
                "movs r10, #1\n"                                                                                     \
                ".endif\n"                                                                                           \
                ".if " #clamp "\n"                                                                                   \
                "ldrd r2, r4, [r0, #28]\n"                                                                           \
                "vdup.16 q3, r2\n"                                                                                   \
                "vdup.16 q4, r4\n"                                                                                   \
                ".endif\n"                                                                                           \
                "vldrw.u32 q2, [r0, #36]\n"                                                                          \
                "ldrh r11, [r0, #38]\n"                                                                              \
                "lsl r11, r11, #3\n"                                                                                 \
                "ldr r2, [r0, #116]\n"                                                                               \
                "vctp.16 r2\n"                                                                                       \
                "ldrd r2, r6, [r0, #8]\n"                                                                            \
                "movs r7, #28\n"                                                                                     \
                "mla r2, r2, r7, r5\n"                                                                               \
                "adds r2, #16\n"                                                                                     \
                "str r2, [sp, #8]\n"                                                                                 \
                "ldr r7, [r0, #20]\n"                                                                                \
                "subs r7, #1\n"                                                                                      \
                "sub r1, r6, r7, lsl #3\n"                                                                           \
                "mul r6, r7, r11\n"                                                                                  \
                "rsb r6, r6, #1\n"                                                                                   \
                "strd r6, r7, [sp]\n"                                                                                \
                "mov lr, r7\n"                                                                                       \
                "ldrd r3, r12, [r0]\n"                                                                               \
                "vldrw.u32 q5, [r5], #16\n"                                                                          \
                "ldmia r5!, {r7, r8, r9}\n"                                                                          \
                "vldrb.u8 q7, [r3]\n"                                                                                \
                "vldrb.u8 q6, [r3, #2]\n"                                                                            \
                "vmladav.s8 r0, q7, q5\n"                                                                            \
                "vldrb.u8 q7, [r3, #4]\n"                                                                            \
                "vmladav.s8 r2, q6, q5\n"                                                                            \
                "vldrb.u8 q6, [r3, #6]\n"                                                                            \
                "vmladav.s8 r4, q7, q5\n"                                                                            \
                "vmladav.s8 r6, q6, q5\n"                                                                            \
                "1: wls lr, lr, 3f\n"                                                                                \
                "2: uaccel_eight 0\n"                                                                                \
                "le lr, 2b\n"                                                                                        \
                "3: uaccel_eight 1\n"                                                                                \
                "bne 1b\n"                                                                                           \
                "add sp, #28\n"                                                                                      \
                "pop {r4-r11, lr}\n"                                                                                 \
                "vpop {d8-d15}\n"                                                                                    \
                "bx lr\n"                                                                                            \
                ".purgem uaccel_eight\n" UACCEL_HELIUM_END_TURN_STEPS);                                              \
    }

#endif
