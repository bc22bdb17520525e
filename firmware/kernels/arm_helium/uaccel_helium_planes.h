/* The inner loops of depthwise convolution for Arm Helium: one channel's windows, eight at a time.
 *
 * The input's channels are planes. A gathering load takes up to sixteen bytes under several neighbouring windows at
 * once, and VMLADAV then makes the sum of each with weights of its own, zero where the window does not reach. */
#ifndef UACCEL_HELIUM_PLANES_H
#define UACCEL_HELIUM_PLANES_H

#include "uaccel_helium_planes_turns.h"

/* Where eight windows are: the first four and the others in the plane, and the first one's result. */
struct uaccel_helium_place {
    uaccel_index first, second, result;
};
UACCEL_AT(uaccel_helium_place, first, 0);
UACCEL_AT(uaccel_helium_place, second, 4);
UACCEL_AT(uaccel_helium_place, result, 8);

/* Some channels; the first three fields move on. */
struct uaccel_helium_planes {
    const int8_t *plane;
    int8_t *output;
    uaccel_index channels;
    uaccel_index plane_bytes;
    const struct uaccel_helium_place *places; /* one more than there are */
    uaccel_index count;                       /* of the places */
    int32_t zero_point, lowest, highest;
    uint16_t results[8]; /* where the eight results go, of the first and the second four in turn */
    uint8_t lanes[64];   /* of each load of four windows, where its bytes come from */
    uaccel_index part;   /* where windows take several loads each, from one to the next; of runs, windows of the last eight */
};
UACCEL_AT4(uaccel_helium_planes, 0, plane, output, channels, plane_bytes);
UACCEL_AT4(uaccel_helium_planes, 16, places, count, zero_point, lowest);
UACCEL_AT(uaccel_helium_planes, highest, 32);
UACCEL_AT(uaccel_helium_planes, results, 36);
UACCEL_AT(uaccel_helium_planes, lanes, 52);
UACCEL_AT(uaccel_helium_planes, part, 116);

typedef void uaccel_helium_planes_loop(struct uaccel_helium_planes *job, const int32_t *stream);

/* Where one load takes whole windows, a channel's bias, multiplier and shift stay in r7 to r9, the zero point in r10. */
#define UACCEL_HELIUM_ONE_PART                                                                                       \
    ".macro uaccel_four\n"                                                                                           \
    ".endm\n"                                                                                                        \
    ".macro uaccel_part\n"                                                                                           \
    ".endm\n"                                                                                                        \
    ".macro uaccel_constants\n"                                                                                      \
    "ldmia r4!, {r7, r8, r9}\n"                                                                                      \
    ".endm\n"                                                                                                        \
    ".macro uaccel_first\n"                                                                                          \
    "ldmia r5!, {r0, r11, r12}\n"                                                                                    \
    "add r0, r0, r3\n"                                                                                               \
    ".endm\n"                                                                                                        \
    ".macro uaccel_bias\n"                                                                                           \
    "vadd.i32 q0, q0, r7\n"                                                                                          \
    "vadd.i32 q1, q1, r7\n"                                                                                          \
    ".endm\n"                                                                                                        \
    ".macro uaccel_rest\n"                                                                                           \
    "vadd.f32 q0, q0, r9\n"                                                                                          \
    "vadd.f32 q1, q1, r9\n"                                                                                          \
    ".endm\n"                                                                                                        \
    ".macro uaccel_right\n"                                                                                          \
    "vrshl.s32 q0, r9\n"                                                                                             \
    "vrshl.s32 q1, r9\n"                                                                                             \
    ".endm\n"                                                                                                        \
    ".macro uaccel_zero\n"                                                                                           \
    "vqadd.s16 q0, q0, r10\n"                                                                                        \
    ".endm\n"

/* uaccel_eight: the sums of the first four windows in q0, of the others in q1; loads stand away from their use. */
#define UACCEL_HELIUM_ONE_LOAD                                                                                       \
    UACCEL_HELIUM_ONE_PART                                                                                           \
    ".macro uaccel_lanes\n"                                                                                          \
    "vldrw.u32 q3, [r0, #52]\n"                                                                                      \
    ".endm\n"                                                                                                        \
    ".macro uaccel_weights\n"                                                                                        \
    "vldrw.u32 q4, [r4], #16\n"                                                                                      \
    "vldrw.u32 q5, [r4], #16\n"                                                                                      \
    "vldrw.u32 q6, [r4], #16\n"                                                                                      \
    "vldrw.u32 q7, [r4], #16\n"                                                                                      \
    ".endm\n"                                                                                                        \
    ".macro uaccel_eight\n"                                                                                          \
    "vldrb.u8 q0, [r0, q3]\n"                                                                                        \
    "add r12, r12, r1\n"                                                                                             \
    "vldrb.u8 q1, [r11, q3]\n"                                                                                       \
    "vmladav.s8 r0, q0, q4\n"                                                                                        \
    "vmladav.s8 r2, q0, q5\n"                                                                                        \
    "vmladav.s8 r4, q0, q6\n"                                                                                        \
    "vmladav.s8 r6, q0, q7\n"                                                                                        \
    "vmov q0[2], q0[0], r0, r4\n"                                                                                    \
    "vmladav.s8 r0, q1, q4\n"                                                                                        \
    "vmladav.s8 r4, q1, q6\n"                                                                                        \
    "vmov q0[3], q0[1], r2, r6\n"                                                                                    \
    "vmladav.s8 r2, q1, q5\n"                                                                                        \
    "vmladav.s8 r6, q1, q7\n"                                                                                        \
    "vmov q1[2], q1[0], r0, r4\n"                                                                                    \
    "vmov q1[3], q1[1], r2, r6\n"                                                                                    \
    ".endm\n"

#define UACCEL_HELIUM_FOUR_LANES                                                                                     \
    ".macro uaccel_lanes\n"                                                                                          \
    "vldrw.u32 q3, [r0, #52]\n"                                                                                      \
    "vldrw.u32 q4, [r0, #68]\n"                                                                                      \
    "vldrw.u32 q5, [r0, #84]\n"                                                                                      \
    "vldrw.u32 q6, [r0, #100]\n"

#define UACCEL_HELIUM_FOUR_LOADS                                                                                     \
    UACCEL_HELIUM_ONE_PART                                                                                           \
    UACCEL_HELIUM_FOUR_LANES                                                                                         \
    ".endm\n"                                                                                                        \
    ".macro uaccel_weights\n"                                                                                        \
    "vldrw.u32 q7, [r4], #16\n"                                                                                      \
    ".endm\n"                                                                                                        \
    ".macro uaccel_eight\n"                                                                                          \
    "vldrb.u8 q0, [r0, q6]\n"                                                                                        \
    "vldrb.u8 q1, [r0, q5]\n"                                                                                        \
    "vmladav.s8 r6, q0, q7\n"                                                                                        \
    "vldrb.u8 q0, [r0, q4]\n"                                                                                        \
    "vmladav.s8 r4, q1, q7\n"                                                                                        \
    "vldrb.u8 q1, [r0, q3]\n"                                                                                        \
    "vmladav.s8 r2, q0, q7\n"                                                                                        \
    "vmladav.s8 r0, q1, q7\n"                                                                                        \
    "vmov q0[2], q0[0], r0, r4\n"                                                                                    \
    "vmov q0[3], q0[1], r2, r6\n"                                                                                    \
    "add r12, r12, r1\n"                                                                                             \
    "vldrb.u8 q1, [r11, q6]\n"                                                                                       \
    "vmladav.s8 r6, q1, q7\n"                                                                                        \
    "vldrb.u8 q1, [r11, q5]\n"                                                                                       \
    "vmladav.s8 r4, q1, q7\n"                                                                                        \
    "vldrb.u8 q1, [r11, q4]\n"                                                                                       \
    "vmladav.s8 r2, q1, q7\n"                                                                                        \
    "vldrb.u8 q1, [r11, q3]\n"                                                                                       \
    "vmladav.s8 r0, q1, q7\n"                                                                                        \
    "vmov q1[2], q1[0], r0, r4\n"                                                                                    \
    "vmov q1[3], q1[1], r2, r6\n"                                                                                    \
    ".endm\n"

/* Windows of several loads each, whose weights come through r10: parts of a window, r9 bytes apart. q2
 * takes data, too, and is loaded again. */
#define UACCEL_HELIUM_PARTS(parts)                                                                                   \
    UACCEL_HELIUM_FOUR_LANES                                                                                         \
    "ldr r9, [r0, #116]\n"                                                                                           \
    ".endm\n"                                                                                                        \
    ".macro uaccel_weights\n"                                                                                        \
    "mov r10, r4\n"                                                                                                  \
    "add r4, #16 * " #parts "\n"                                                                                     \
    ".endm\n"                                                                                                        \
    ".macro uaccel_constants\n"                                                                                      \
    "ldr r8, [r4, #4]\n"                                                                                             \
    "add r4, #12\n"                                                                                                  \
    ".endm\n"                                                                                                        \
    ".macro uaccel_first\n"                                                                                          \
    "ldmia r5!, {r7, r11, r12}\n"                                                                                    \
    "add r7, r7, r3\n"                                                                                               \
    ".endm\n"                                                                                                        \
    ".macro uaccel_eight\n"                                                                                          \
    "uaccel_four r7, q0, q1\n"                                                                                       \
    "vmov q0[2], q0[0], r0, r4\n"                                                                                    \
    "vmov q0[3], q0[1], r2, r6\n"                                                                                    \
    "add r12, r12, r1\n"                                                                                             \
    "uaccel_four r11, q1, q2\n"                                                                                      \
    "vmov q1[2], q1[0], r0, r4\n"                                                                                    \
    "vmov q1[3], q1[1], r2, r6\n"                                                                                    \
    ".endm\n"                                                                                                        \
    ".macro uaccel_four at, x, y\n"                                                                                  \
    ".set .Luaccel_part, 0\n"                                                                                        \
    "uaccel_part \\at, \\x, \\y, vmladav.s8\n"                                                                       \
    ".rept " #parts " - 1\n"                                                                                         \
    ".set .Luaccel_part, .Luaccel_part + 16\n"                                                                       \
    "add \\at, r9\n"                                                                                                 \
    "uaccel_part \\at, \\x, \\y, vmladava.s8\n"                                                                      \
    ".endr\n"                                                                                                        \
    ".endm\n"                                                                                                        \
    ".macro uaccel_part at, x, y, product\n"                                                                         \
    "vldrw.u32 q7, [r10, #.Luaccel_part]\n"                                                                          \
    "vldrb.u8 \\x, [\\at, q6]\n"                                                                                     \
    "vldrb.u8 \\y, [\\at, q5]\n"                                                                                     \
    "\\product r6, \\x, q7\n"                                                                                        \
    "vldrb.u8 \\x, [\\at, q4]\n"                                                                                     \
    "\\product r4, \\y, q7\n"                                                                                        \
    "vldrb.u8 \\y, [\\at, q3]\n"                                                                                     \
    "\\product r2, \\x, q7\n"                                                                                        \
    "\\product r0, \\y, q7\n"                                                                                        \
    ".endm\n"                                                                                                        \
    ".macro uaccel_bias\n"                                                                                           \
    "ldr r0, [r10, #16 * " #parts "]\n"                                                                              \
    "vadd.i32 q0, q0, r0\n"                                                                                          \
    "vadd.i32 q1, q1, r0\n"                                                                                          \
    ".endm\n"                                                                                                        \
    ".macro uaccel_rest\n"                                                                                           \
    "ldr r0, [r10, #16 * " #parts " + 8]\n"                                                                          \
    "vadd.f32 q0, q0, r0\n"                                                                                          \
    "vadd.f32 q1, q1, r0\n"                                                                                          \
    ".endm\n"                                                                                                        \
    ".macro uaccel_right\n"                                                                                          \
    "ldr r0, [r10, #16 * " #parts " + 8]\n"                                                                          \
    "vrshl.s32 q0, r0\n"                                                                                             \
    "vrshl.s32 q1, r0\n"                                                                                             \
    ".endm\n"                                                                                                        \
    ".macro uaccel_zero\n"                                                                                           \
    "ldr r0, [sp]\n"                                                                                                 \
    "vldrw.u32 q2, [r0, #36]\n"                                                                                      \
    "ldr r0, [r0, #24]\n"                                                                                            \
    "vqadd.s16 q0, q0, r0\n"                                                                                         \
    ".endm\n"

/* stream: of each channel the weights of the windows under a load, its bias, its multiplier, its shift. */
#define UACCEL_HELIUM_PLANES(name, loads, sign, clamp)                                                               \
    UACCEL_ASSEMBLY void name(struct uaccel_helium_planes *job, const int32_t *stream)                               \
    {                                                                                                                \
        __asm__(".syntax unified\n" loads "vpush {d8-d15}\n"                                                         \
                "push {r0, r1, r4-r11, lr}\n"                                                                        \
                "ldrd r3, r1, [r0]\n"                                                                                \
                "ldr r10, [r0, #24]\n"                                                                               \
                "vldrw.u32 q2, [r0, #36]\n"                                                                          \
                "uaccel_lanes\n"                                                                                     \
                "1: ldrd r0, r4, [sp]\n"                                                                             \
                "uaccel_weights\n"                                                                                   \
                "uaccel_constants\n"                                                                                 \
                "str r4, [sp, #4]\n"                                                                                 \
                "ldrd r5, lr, [r0, #16]\n"                                                                           \
                "2: uaccel_first\n"                                                                                  \
                "add r11, r11, r3\n"                                                                                 \
                "uaccel_eight\n"                                                                                     \
                "uaccel_bias\n"                                                                                      \
                ".if " #sign " >= 2\n"                                                                               \
                "vcvt.f32.s32 q0, q0\n"                                                                              \
                "vcvt.f32.s32 q1, q1\n"                                                                              \
                ".if " #sign " == 3\n"                                                                               \
                "uaccel_rest\n"                                                                                      \
                ".endif\n"                                                                                           \
                "vmul.f32 q0, q0, r8\n"                                                                              \
                "vmul.f32 q1, q1, r8\n"                                                                              \
                "vcvtn.s32.f32 q0, q0\n"                                                                             \
                "vcvtn.s32.f32 q1, q1\n"                                                                             \
                ".else\n"                                                                                            \
                "vqrdmulh.s32 q0, q0, r8\n"                                                                          \
                "vqrdmulh.s32 q1, q1, r8\n"                                                                          \
                ".endif\n"                                                                                           \
                ".if " #sign " == 1\n"                                                                               \
                "ldr r0, [sp]\n"                                                                                     \
                "vshr.s32 q2, q0, #31\n"                                                                             \
                "vadd.i32 q0, q0, q2\n"                                                                              \
                "vshr.s32 q2, q1, #31\n"                                                                             \
                "vadd.i32 q1, q1, q2\n"                                                                              \
                "vldrw.u32 q2, [r0, #36]\n"                                                                          \
                ".endif\n"                                                                                           \
                ".if " #sign " < 2\n"                                                                                \
                "uaccel_right\n"                                                                                     \
                ".endif\n"                                                                                           \
                "vqmovnb.s32 q0, q0\n"                                                                               \
                "vqmovnt.s32 q0, q1\n"                                                                               \
                "uaccel_zero\n"                                                                                      \
                ".if " #clamp "\n"                                                                                   \
                "ldr r0, [sp]\n"                                                                                     \
                "ldrd r2, r4, [r0, #28]\n"                                                                           \
                "vdup.16 q1, r2\n"                                                                                   \
                "vmax.s16 q0, q0, q1\n"                                                                              \
                "vdup.16 q1, r4\n"                                                                                   \
                "vmin.s16 q0, q0, q1\n"                                                                              \
                ".else\n"                                                                                            \
                "vqmovnb.s16 q0, q0\n"                                                                               \
                ".endif\n"                                                                                           \
                "vstrb.16 q0, [r12, q2]\n"                                                                           \
                "le lr, 2b\n"                                                                                        \
                "ldr r0, [sp]\n"                                                                                     \
                "ldrd r2, r4, [r0, #8]\n"                                                                            \
                "add r1, r1, #1\n"                                                                                   \
                "add r3, r3, r4\n"                                                                                   \
                "subs r2, #1\n"                                                                                      \
                "str r2, [r0, #8]\n"                                                                                 \
                "bne 1b\n"                                                                                           \
                "pop {r0, r1, r4-r11, lr}\n"                                                                         \
                "vpop {d8-d15}\n"                                                                                    \
                "bx lr\n"                                                                                            \
                UACCEL_PURGE("uaccel_lanes, uaccel_weights, uaccel_constants, uaccel_first, "                        \
                             "uaccel_eight, uaccel_four, uaccel_part, uaccel_bias, uaccel_rest, "                    \
                             "uaccel_right, uaccel_zero"));                                                          \
    }

UACCEL_ASSEMBLY_BEGIN

UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES_OF_A_ROW, uaccel_helium_planes_row, )
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_1, UACCEL_HELIUM_ONE_LOAD)
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES_IN_TURN, uaccel_helium_planes_2, )
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_4, UACCEL_HELIUM_FOUR_LOADS)
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_8, UACCEL_HELIUM_PARTS(2))
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_12, UACCEL_HELIUM_PARTS(3))
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_16, UACCEL_HELIUM_PARTS(4))
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_20, UACCEL_HELIUM_PARTS(5))
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_24, UACCEL_HELIUM_PARTS(6))
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_PLANES, uaccel_helium_planes_28, UACCEL_HELIUM_PARTS(7))

UACCEL_ASSEMBLY_END

#define UACCEL_HELIUM_PLANES_BY(loads) UACCEL_HELIUM_LOOP_OF(uaccel_helium_planes_loop, uaccel_helium_planes_##loads, finish)

/* The loop for so many loads of four windows; 0: each is a run of bytes. A constant decides, so that code for the others
 * takes no place. */
UACCEL_KERNEL uaccel_helium_planes_loop *uaccel_helium_planes_of(const struct uaccel_helium_finish *finish,
                                                                 uaccel_index loads)
{
    return loads == 0    ? UACCEL_HELIUM_PLANES_BY(row)
           : loads == 1  ? UACCEL_HELIUM_PLANES_BY(1)
           : loads == 2  ? UACCEL_HELIUM_PLANES_BY(2)
           : loads == 4  ? UACCEL_HELIUM_PLANES_BY(4)
           : loads == 8  ? UACCEL_HELIUM_PLANES_BY(8)
           : loads == 12 ? UACCEL_HELIUM_PLANES_BY(12)
           : loads == 16 ? UACCEL_HELIUM_PLANES_BY(16)
           : loads == 20 ? UACCEL_HELIUM_PLANES_BY(20)
           : loads == 24 ? UACCEL_HELIUM_PLANES_BY(24)
                         : UACCEL_HELIUM_PLANES_BY(28);
}

#undef UACCEL_HELIUM_PLANES_BY

#endif
