/* Fully connected for Arm Helium: int8, eight units of one row at a time. */
#ifndef UACCEL_FULLY_CONNECTED_HELIUM_H
#define UACCEL_FULLY_CONNECTED_HELIUM_H

#include "uaccel_helium.h"

struct uaccel_fully_connected_helium {
    uaccel_index rows, depth, units;
    uaccel_index length; /* of a row, in whole vectors of 16 bytes */
    int32_t each;        /* 1: each unit has a multiplier and a shift in the stream; 0: these are those of all */
    int32_t multiplier, right;
    struct uaccel_helium_finish finish;
};
UACCEL_AT4(uaccel_fully_connected_helium, 0, rows, depth, units, length);
UACCEL_AT4(uaccel_fully_connected_helium, 16, each, multiplier, right, finish);
UACCEL_AT(uaccel_helium_finish, zero_point, 0);
UACCEL_AT(uaccel_helium_finish, lowest, 4);
UACCEL_AT(uaccel_helium_finish, highest, 8);

/* One row of whole vectors. */
typedef void uaccel_helium_units_loop(const struct uaccel_fully_connected_helium *p, const int32_t *stream,
                                      const int8_t *input, int8_t *output);

/* A turn is the last steps of eight units amid the first products of the next eight, so that neither waits. Behind the
 * last eight there are no products. q5 and q6: multiplier and shift of all units; q7: the zero point in halves; on the
 * stack the row, and behind it the bounds. */
#define UACCEL_HELIUM_UNITS_MACROS                                                                                   \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_more line:vararg\n"                                                                               \
    ".if .Luaccel_more\n"                                                                                            \
    "\\line\n"                                                                                                       \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    /* 16 bytes of the row, 68 bytes of code */                                                                      \
    ".macro uaccel_step product, compare\n"                                                                          \
    "vldrb.u8 q2, [r3], #16\n"                                                                                       \
    "\\compare\n"                                                                                                    \
    ".irp sum, r0, r2, r4, r6, r8, r10, r12, lr\n"                                                                   \
    "vldrw.u32 q3, [r1], #16\n"                                                                                      \
    "\\product \\sum, q2, q3\n"                                                                                      \
    ".endr\n"                                                                                                        \
    ".endm\n"                                                                                                        \
    ".macro uaccel_load each, q, at\n"                                                                               \
    ".if \\each\n"                                                                                                   \
    "vldrw.u32 \\q, [r1, #\\at]\n"                                                                                   \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    ".macro uaccel_turn sign, clamp, each\n"                                                                         \
    "uaccel_more ldr r3, [sp]\n"                                                                                     \
    "vmov q0[2], q0[0], r0, r4\n"                                                                                    \
    "vldrw.u32 q3, [r1], #160 + 64 * \\each\n"                                                                       \
    "vmov q0[3], q0[1], r2, r6\n"                                                                                    \
    "uaccel_more vldrb.u8 q2, [r3], #16\n"                                                                           \
    "vmov q1[2], q1[0], r8, r12\n"                                                                                   \
    "uaccel_more vldrw.u32 q4, [r1, #-128]\n"                                                                        \
    "vadd.i32 q0, q0, q3\n"                                                                                          \
    "uaccel_more vmladav.s8 r0, q2, q4\n"                                                                            \
    "vldrw.u32 q3, [r1, #-144 - 64 * \\each]\n"                                                                      \
    "vmov q1[3], q1[1], r10, lr\n"                                                                                   \
    "uaccel_load \\each, q5, -192\n"                                                                                 \
    ".if \\sign >= 2\n"                                                                                              \
    "vcvt.f32.s32 q0, q0\n"                                                                                          \
    "vadd.i32 q1, q1, q3\n"                                                                                          \
    ".if \\sign == 3\n"                                                                                              \
    ".if \\each\n"                                                                                                   \
    "vldrw.u32 q3, [r1, #-160]\n"                                                                                    \
    "vadd.f32 q0, q0, q3\n"                                                                                          \
    ".else\n"                                                                                                        \
    "vadd.f32 q0, q0, q6\n"                                                                                          \
    ".endif\n"                                                                                                       \
    ".endif\n"                                                                                                       \
    "uaccel_load \\each, q6, -176\n"                                                                                 \
    "vmul.f32 q0, q0, q5\n"                                                                                          \
    "uaccel_more vldrw.u32 q4, [r1, #-112]\n"                                                                        \
    "vcvt.f32.s32 q1, q1\n"                                                                                          \
    "uaccel_more vmladav.s8 r2, q2, q4\n"                                                                            \
    ".if \\sign == 3\n"                                                                                              \
    ".if \\each\n"                                                                                                   \
    "vldrw.u32 q3, [r1, #-144]\n"                                                                                    \
    "vadd.f32 q1, q1, q3\n"                                                                                          \
    ".else\n"                                                                                                        \
    "vadd.f32 q1, q1, q6\n"                                                                                          \
    ".endif\n"                                                                                                       \
    ".endif\n"                                                                                                       \
    ".if \\each\n"                                                                                                   \
    "vmul.f32 q1, q1, q6\n"                                                                                          \
    ".else\n"                                                                                                        \
    "vmul.f32 q1, q1, q5\n"                                                                                          \
    ".endif\n"                                                                                                       \
    "vcvtn.s32.f32 q0, q0\n"                                                                                         \
    "uaccel_more vldrw.u32 q3, [r1, #-96]\n"                                                                         \
    "vcvtn.s32.f32 q1, q1\n"                                                                                         \
    "uaccel_more vmladav.s8 r4, q2, q3\n"                                                                            \
    ".else\n"                                                                                                        \
    "vqrdmulh.s32 q0, q0, q5\n"                                                                                      \
    "uaccel_load \\each, q5, -160\n"                                                                                 \
    "vadd.i32 q1, q1, q3\n"                                                                                          \
    "uaccel_load \\each, q6, -176\n"                                                                                 \
    ".if \\sign\n"                                                                                                   \
    "vshr.s32 q3, q0, #31\n"                                                                                         \
    ".endif\n"                                                                                                       \
    "uaccel_more vldrw.u32 q4, [r1, #-112]\n"                                                                        \
    ".if \\each\n"                                                                                                   \
    "vqrdmulh.s32 q1, q1, q6\n"                                                                                      \
    ".else\n"                                                                                                        \
    "vqrdmulh.s32 q1, q1, q5\n"                                                                                      \
    ".endif\n"                                                                                                       \
    ".if \\sign\n"                                                                                                   \
    "vadd.i32 q0, q0, q3\n"                                                                                          \
    "uaccel_more vmladav.s8 r2, q2, q4\n"                                                                            \
    "vshr.s32 q3, q1, #31\n"                                                                                         \
    "uaccel_load \\each, q6, -144\n"                                                                                 \
    "vadd.i32 q1, q1, q3\n"                                                                                          \
    ".else\n"                                                                                                        \
    "uaccel_more vmladav.s8 r2, q2, q4\n"                                                                            \
    "uaccel_load \\each, q6, -144\n"                                                                                 \
    ".endif\n"                                                                                                       \
    ".if \\each\n"                                                                                                   \
    "vrshl.s32 q0, q0, q5\n"                                                                                         \
    "uaccel_more vldrw.u32 q3, [r1, #-96]\n"                                                                         \
    "vrshl.s32 q1, q1, q6\n"                                                                                         \
    ".else\n"                                                                                                        \
    "vrshl.s32 q0, q0, q6\n"                                                                                         \
    "uaccel_more vldrw.u32 q3, [r1, #-96]\n"                                                                         \
    "vrshl.s32 q1, q1, q6\n"                                                                                         \
    ".endif\n"                                                                                                       \
    "uaccel_more vmladav.s8 r4, q2, q3\n"                                                                            \
    ".endif\n"                                                                                                       \
    "uaccel_more vldrw.u32 q4, [r1, #-80]\n"                                                                         \
    "vqmovnb.s32 q0, q0\n"                                                                                           \
    "uaccel_more vmladav.s8 r6, q2, q4\n"                                                                            \
    "uaccel_more vldrw.u32 q3, [r1, #-64]\n"                                                                         \
    "uaccel_more vmladav.s8 r8, q2, q3\n"                                                                            \
    "vqmovnt.s32 q0, q1\n"                                                                                           \
    "uaccel_more vldrw.u32 q4, [r1, #-48]\n"                                                                         \
    "uaccel_more vmladav.s8 r10, q2, q4\n"                                                                           \
    "uaccel_more vldrw.u32 q3, [r1, #-32]\n"                                                                         \
    "vqadd.s16 q0, q0, q7\n"                                                                                         \
    "uaccel_more vmladav.s8 r12, q2, q3\n"                                                                           \
    "uaccel_more vldrw.u32 q4, [r1, #-16]\n"                                                                         \
    ".if \\clamp\n"                                                                                                  \
    "vldrw.u32 q1, [sp, #4]\n"                                                                                       \
    "vmax.s16 q0, q0, q1\n"                                                                                          \
    "vldrw.u32 q1, [sp, #20]\n"                                                                                      \
    "uaccel_more vmladav.s8 lr, q2, q4\n"                                                                            \
    "vmin.s16 q0, q0, q1\n"                                                                                          \
    ".else\n"                                                                                                        \
    "vqmovnb.s16 q0, q0\n"                                                                                           \
    "uaccel_more vmladav.s8 lr, q2, q4\n"                                                                            \
    ".endif\n"                                                                                                       \
    ".endm\n"

/* stream: of each eight units, even ones first, for each 16 inputs their weights; their biases; and where each has its
 * own, their multipliers, and their shifts. */
#define UACCEL_HELIUM_UNITS(name, each, sign, clamp)                                                                 \
    UACCEL_ASSEMBLY void name(const struct uaccel_fully_connected_helium *p, const int32_t *stream,                  \
                              const int8_t *input, int8_t *output)                                                   \
    {                                                                                                                \
        __asm__(UACCEL_HELIUM_UNITS_MACROS "vpush {d8-d15}\n"                                                        \
                "push {r4-r11, lr}\n"                                                                                \
                "sub sp, #36\n"                                                                                      \
                "str r2, [sp]\n"                                                                                     \
                "ldrd r7, r4, [r0, #8]\n"                                                                            \
                "mov r5, r3\n"                                                                                       \
                "mov r3, r2\n"                                                                                       \
                "add r11, r2, r4\n"                                                                                  \
                "adr.w r9, 4f + 1\n"                                                                                 \
                "lsrs r4, #4\n"                                                                                      \
                "subs r4, #1\n"                                                                                      \
                "beq 1f\n"                                                                                           \
                "subs r4, #1\n"                                                                                      \
                "and r4, r4, #7\n"                                                                                   \
                "movs r6, #68\n"                                                                                     \
                "mul r4, r4, r6\n"                                                                                   \
                "add r4, r4, #74\n"                                                                                  \
                "sub r9, r9, r4\n"                                                                                   \
                "1: ldr r4, [r0, #28]\n"                                                                             \
                "vdup.16 q7, r4\n"                                                                                   \
                ".if " #clamp "\n"                                                                                   \
                "ldrd r2, r4, [r0, #32]\n"                                                                           \
                "vdup.16 q0, r2\n"                                                                                   \
                "vdup.16 q1, r4\n"                                                                                   \
                "vstrw.32 q0, [sp, #4]\n"                                                                            \
                "vstrw.32 q1, [sp, #20]\n"                                                                           \
                ".endif\n"                                                                                           \
                ".if " #each " == 0\n"                                                                               \
                "ldrd r2, r4, [r0, #20]\n"                                                                           \
                "vdup.32 q5, r2\n"                                                                                   \
                "vdup.32 q6, r4\n"                                                                                   \
                ".endif\n"                                                                                           \
                "uaccel_step vmladav.s8\n"                                                                           \
                "bx r9\n"                                                                                            \
                ".balign 4\n"                                                                                        \
                "2: .rept 7\n"                                                                                       \
                "uaccel_step vmladava.s8\n"                                                                          \
                ".endr\n"                                                                                            \
                "uaccel_step vmladava.s8, \"cmp r3, r11\"\n"                                                         \
                "bne.w 2b\n"                                                                                         \
                "4: subs r7, #8\n"                                                                                   \
                "ble 5f\n"                                                                                           \
                ".set .Luaccel_more, 1\n"                                                                            \
                "uaccel_turn " #sign ", " #clamp ", " #each "\n"                                                     \
                "vstrb.16 q0, [r5], #8\n"                                                                            \
                "bx r9\n"                                                                                            \
                "5: .set .Luaccel_more, 0\n"                                                                         \
                "uaccel_turn " #sign ", " #clamp ", " #each "\n"                                                     \
                "adds r7, #8\n"                                                                                      \
                "vctp.16 r7\n"                                                                                       \
                "vpst\n"                                                                                             \
                "vstrbt.16 q0, [r5]\n"                                                                               \
                "add sp, #36\n"                                                                                      \
                "pop {r4-r11, lr}\n"                                                                                 \
                "vpop {d8-d15}\n"                                                                                    \
                "bx lr\n"                                                                                            \
                UACCEL_PURGE("uaccel_more, uaccel_step, uaccel_load, uaccel_turn"));                                 \
    }

UACCEL_ASSEMBLY_BEGIN

UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_UNITS, uaccel_helium_units_alike, 0)
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_UNITS, uaccel_helium_units_each, 1)

UACCEL_ASSEMBLY_END

UACCEL_SHARED void uaccel_fully_connected_helium_rows(const struct uaccel_fully_connected_helium *p,
                                                      const int8_t *input, const int32_t *stream, int8_t *output,
                                                      int8_t *scratch, uaccel_helium_units_loop *loop)
{
    for (uaccel_index row = 0; row < p->rows; ++row) {
        const int8_t *whole = input;
        if (p->length > p->depth) { /* what follows the row has weights of zero */
            uaccel_helium_copy(scratch, input, p->depth);
            whole = scratch;
        }
        loop(p, stream, whole, output);
        input += p->depth;
        output += p->units;
    }
}

/* scratch: a row in whole vectors, unless it is. Constants decide, so that code for the others takes no place. */
UACCEL_KERNEL void uaccel_fully_connected_helium_s8(const struct uaccel_fully_connected_helium *p,
                                                    const int8_t *input, const int32_t *stream, int8_t *output,
                                                    void *scratch)
{
    uaccel_fully_connected_helium_rows(
        p, input, stream, output, scratch,
        p->each ? UACCEL_HELIUM_LOOP_OF(uaccel_helium_units_loop, uaccel_helium_units_each, &p->finish)
                : UACCEL_HELIUM_LOOP_OF(uaccel_helium_units_loop, uaccel_helium_units_alike, &p->finish));
}

#endif
