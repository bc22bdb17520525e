/* Fully connected for Arm Helium: int8, eight units of one row at a time. */
#ifndef UACCEL_FULLY_CONNECTED_HELIUM_H
#define UACCEL_FULLY_CONNECTED_HELIUM_H

#include "uaccel_helium.h"

struct uaccel_fully_connected_helium {
    uaccel_index rows, depth, units;
    uaccel_index length; /* of a row, in whole vectors of 16 bytes */
    struct uaccel_helium_finish finish;
};

/* One row. */
struct uaccel_helium_units {
    const int8_t *input, *end; /* whole vectors of 16 bytes */
    int8_t *output;
    uaccel_index units; /* one at least */
    uaccel_index skip;  /* bytes of code behind the step to begin with */
    int32_t zero_point, lowest, highest;
};
UACCEL_AT(uaccel_helium_units, input, 0);
UACCEL_AT(uaccel_helium_units, end, 4);
UACCEL_AT(uaccel_helium_units, output, 8);
UACCEL_AT(uaccel_helium_units, units, 12);
UACCEL_AT(uaccel_helium_units, skip, 16);
UACCEL_AT(uaccel_helium_units, zero_point, 20);
UACCEL_AT(uaccel_helium_units, lowest, 24);
UACCEL_AT(uaccel_helium_units, highest, 28);

#define UACCEL_HELIUM_UNITS_STEP 68     /* bytes of code for 16 bytes of the row */
#define UACCEL_HELIUM_UNITS_UNROLLED 10 /* steps in a loop's round */

typedef void uaccel_helium_units_loop(struct uaccel_helium_units *job, const int32_t *stream);

/* stream: of each eight units, even ones first, their biases; for each 16 inputs their weights; their multipliers,
 * and their shifts. */
#define UACCEL_HELIUM_UNITS(name, sign, clamp)                                                                       \
    UACCEL_ASSEMBLY void name(struct uaccel_helium_units *job, const int32_t *stream)                                \
    {                                                                                                                \
        __asm__(UACCEL_HELIUM_MACROS                                                                                 \
                "vpush {d8-d15}\n"                                                                                   \
                "push {r4-r11, lr}\n"                                                                                \
                "uaccel_bounds r0, 20\n"                                                                             \
                "ldrd r3, r11, [r0]\n"                                                                               \
                "ldrd r5, r7, [r0, #8]\n"                                                                            \
                "ldr r2, [r0, #16]\n"                                                                                \
                "push {r3}\n"                                                                                        \
                "adr.w r9, 3f\n"                                                                                     \
                "sub r9, r9, r2\n"                                                                                   \
                "orr r9, r9, #1\n"                                                                                   \
                "1: ldr r3, [sp]\n"                                                                                  \
                "ldmia r1!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"                                                    \
                "bx r9\n"                                                                                            \
                ".balign 4\n"                                                                                        \
                "2: .rept 10\n"                                                                                      \
                "vldrb.u8 q0, [r3], #16\n"                                                                           \
                ".irp sum, r0, r2, r4, r6, r8, r10, r12, lr\n"                                                       \
                "vldrw.u32 q1, [r1], #16\n"                                                                          \
                "vmladava.s8 \\sum, q0, q1\n"                                                                        \
                ".endr\n"                                                                                            \
                ".endr\n"                                                                                            \
                "3: cmp r3, r11\n"                                                                                   \
                "bne 2b\n"                                                                                           \
                "vmov q0[2], q0[0], r0, r4\n"                                                                        \
                "vldrw.u32 q2, [r1], #16\n"                                                                          \
                "vmov q0[3], q0[1], r2, r6\n"                                                                        \
                "vldrw.u32 q3, [r1], #16\n"                                                                          \
                "vmov q1[2], q1[0], r8, r12\n"                                                                       \
                "vldrw.u32 q4, [r1], #16\n"                                                                          \
                "vmov q1[3], q1[1], r10, lr\n"                                                                       \
                "uaccel_multiply " #sign ", q2, q3\n"                                                                \
                "vldrw.u32 q3, [r1], #16\n"                                                                          \
                "uaccel_shift " #sign ", q4, q3\n"                                                                   \
                "uaccel_narrow " #clamp "\n"                                                                         \
                "vctp.16 r7\n"                                                                                       \
                "vpst\n"                                                                                             \
                "vstrbt.16 q0, [r5], #8\n"                                                                           \
                "subs r7, #8\n"                                                                                      \
                "bgt 1b\n"                                                                                           \
                "add sp, #4\n"                                                                                       \
                "pop {r4-r11, lr}\n"                                                                                 \
                "vpop {d8-d15}\n"                                                                                    \
                "bx lr\n" UACCEL_HELIUM_END_MACROS);                                                                 \
    }

/* The bodies find their parameters in registers. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"

UACCEL_HELIUM_UNITS(uaccel_helium_units_plain, 0, 0)
UACCEL_HELIUM_UNITS(uaccel_helium_units_clamp, 0, 1)
UACCEL_HELIUM_UNITS(uaccel_helium_units_sign, 1, 0)
UACCEL_HELIUM_UNITS(uaccel_helium_units_sign_clamp, 1, 1)
#if __ARM_FEATURE_MVE & 2
UACCEL_HELIUM_UNITS(uaccel_helium_units_float32, 2, 1)
#endif

#pragma GCC diagnostic pop

UACCEL_SHARED void uaccel_fully_connected_helium_rows(const struct uaccel_fully_connected_helium *p,
                                                      const int8_t *input, const int32_t *stream, int8_t *output,
                                                      int8_t *scratch, uaccel_helium_units_loop *loop)
{
    const uaccel_index steps = p->length / 16;
    struct uaccel_helium_units job;
    job.units = p->units;
    job.skip = ((steps - 1) % UACCEL_HELIUM_UNITS_UNROLLED + 1) * UACCEL_HELIUM_UNITS_STEP;
    job.zero_point = p->finish.zero_point;
    job.lowest = p->finish.lowest;
    job.highest = p->finish.highest;
    for (uaccel_index row = 0; row < p->rows; ++row) {
        job.input = input;
        job.output = output;
        if (p->length > p->depth) { /* what follows the row has weights of zero */
            uaccel_helium_copy(scratch, input, p->depth);
            job.input = scratch;
        }
        job.end = job.input + p->length;
        loop(&job, stream);
        input += p->depth;
        output += p->units;
    }
}

/* scratch: a row in whole vectors, unless it is. A constant decides, so that code for the others takes no place. */
UACCEL_KERNEL void uaccel_fully_connected_helium_s8(const struct uaccel_fully_connected_helium *p,
                                                    const int8_t *input, const int32_t *stream, int8_t *output,
                                                    void *scratch)
{
    if (p->finish.sign == 2) {
        uaccel_fully_connected_helium_rows(
            p, input, stream, output, scratch,
            UACCEL_HELIUM_SINGLE(uaccel_helium_units_loop, uaccel_helium_units_float32));
        return;
    }
    uaccel_helium_units_loop *clamped = p->finish.sign ? uaccel_helium_units_sign_clamp : uaccel_helium_units_clamp;
    uaccel_helium_units_loop *plain = p->finish.sign ? uaccel_helium_units_sign : uaccel_helium_units_plain;
    uaccel_fully_connected_helium_rows(p, input, stream, output, scratch, p->finish.clamp ? clamped : plain);
}

#endif
