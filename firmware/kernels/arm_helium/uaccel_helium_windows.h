/* The inner loops of convolution for Arm Helium: two windows at a time, four output channels at a time. */
#ifndef UACCEL_HELIUM_WINDOWS_H
#define UACCEL_HELIUM_WINDOWS_H

#include "uaccel_helium.h"

/* The windows of `pairs` pairs of pixels; the first four fields move on. */
struct uaccel_helium_windows {
    const int8_t *first, *second; /* a pair's inputs, each a run of bytes; what follows them is read, too, up to 15 */
    int8_t *output;               /* the result of the first */
    uaccel_index pairs;
    uaccel_index input_step, output_step; /* to the next pair */
    uaccel_index skip;                    /* bytes of code behind the step to begin with */
    uaccel_index length;                  /* of a run, in whole vectors of 16 bytes */
    uaccel_index last;                    /* of the output channels the first of the last four */
    int32_t zero_point, lowest, highest;
    uint16_t places[8];   /* where a pair's four channels go, in turn */
    uint16_t channels[8]; /* the same of one pixel, twice */
    uaccel_index biases;  /* where those of the last four channels are, in the stream */
};
UACCEL_AT4(uaccel_helium_windows, 0, first, second, output, pairs);
UACCEL_AT4(uaccel_helium_windows, 16, input_step, output_step, skip, length);
UACCEL_AT4(uaccel_helium_windows, 32, last, zero_point, lowest, highest);
UACCEL_AT(uaccel_helium_windows, places, 48);
UACCEL_AT(uaccel_helium_windows, channels, 64);
UACCEL_AT(uaccel_helium_windows, biases, 80);

typedef void uaccel_helium_windows_loop(struct uaccel_helium_windows *job, const int32_t *stream);

#define UACCEL_HELIUM_STEP 56    /* bytes of code for 16 bytes of a run */
#define UACCEL_HELIUM_UNROLLED 15 /* steps of a round; of short runs what an address reaches from their middle */

/* Runs of up to 15 vectors are addressed from their middle: no address moves. In longer ones they do. A turn is the last
 * steps of four channels amid the first products of the next four, so that neither waits; behind the last four of a pair
 * come the first of the next, and before the first and behind the last of all something that is written over, or not
 * used. stream: of each four channels, the last four of which may begin amid others, the weights of the run's first 16
 * bytes, then of its last ones, and so on to the second, but of long runs of the second, and so on to the last; biases;
 * multipliers; shifts. At the end once more what a turn reads of the first. */
#define UACCEL_HELIUM_TURN_MACROS                                                                                    \
    ".syntax unified\n"                                                                                              \
    ".macro uaccel_data q, from, at\n"                                                                               \
    ".if .Luaccel_long\n"                                                                                            \
    "vldrb.u8 \\q, [\\from], #16\n"                                                                                  \
    ".else\n"                                                                                                        \
    "vldrb.u8 \\q, [\\from, #\\at]\n"                                                                                \
    ".endif\n"                                                                                                       \
    ".endm\n"                                                                                                        \
    ".macro uaccel_products at\n"                                                                                    \
    "uaccel_data q2, r3, \\at\n"                                                                                     \
    "vmladava.s8 r0, q2, q5\n"                                                                                       \
    "uaccel_data q3, r5, \\at\n"                                                                                     \
    "vmladava.s8 r8, q3, q5\n"                                                                                       \
    "vldrw.u32 q6, [r1, #16]!\n"                                                                                     \
    "vmladava.s8 r2, q2, q6\n"                                                                                       \
    "vldrw.u32 q5, [r1, #16]!\n"                                                                                     \
    "vmladava.s8 r10, q3, q6\n"                                                                                      \
    "vmladava.s8 r4, q2, q5\n"                                                                                       \
    "vldrw.u32 q6, [r1, #16]!\n"                                                                                     \
    "vmladava.s8 r12, q3, q5\n"                                                                                      \
    "vmladava.s8 r6, q2, q6\n"                                                                                       \
    "vldrw.u32 q5, [r1, #16]!\n"                                                                                     \
    "vmladava.s8 lr, q3, q6\n"                                                                                       \
    ".endm\n"                                                                                                        \
    /* q5: the biases, at r1; q4: places; q7: the zero point in halves; sp + 32: the bounds */                       \
    ".macro uaccel_turn sign, clamp\n"                                                                               \
    "vmov q0[2], q0[0], r0, r4\n"                                                                                    \
    "uaccel_data q2, r3, -112\n"                                                                                     \
    "vmov q0[3], q0[1], r2, r6\n"                                                                                    \
    "vldrw.u32 q6, [r1, #48]\n"                                                                                      \
    "vmov q1[2], q1[0], r8, r12\n"                                                                                   \
    "vmladav.s8 r0, q2, q6\n"                                                                                        \
    "vmov q1[3], q1[1], r10, lr\n"                                                                                   \
    "uaccel_data q3, r5, -112\n"                                                                                     \
    "vadd.i32 q0, q0, q5\n"                                                                                          \
    "vmladav.s8 r8, q3, q6\n"                                                                                        \
    "vadd.i32 q1, q1, q5\n"                                                                                          \
    "vldrw.u32 q5, [r1, #16]\n"                                                                                      \
    ".if \\sign >= 2\n"                                                                                              \
    "vcvt.f32.s32 q0, q0\n"                                                                                          \
    "vcvt.f32.s32 q1, q1\n"                                                                                          \
    ".if \\sign == 3\n"                                                                                              \
    "vldrw.u32 q6, [r1, #32]\n"                                                                                      \
    "vadd.f32 q0, q0, q6\n"                                                                                          \
    "vadd.f32 q1, q1, q6\n"                                                                                          \
    ".endif\n"                                                                                                       \
    "vmul.f32 q0, q0, q5\n"                                                                                          \
    "vmul.f32 q1, q1, q5\n"                                                                                          \
    "vcvtn.s32.f32 q0, q0\n"                                                                                         \
    "vcvtn.s32.f32 q1, q1\n"                                                                                         \
    "vldrw.u32 q6, [r1, #64]\n"                                                                                      \
    "vmladav.s8 r2, q2, q6\n"                                                                                        \
    "vmladav.s8 r10, q3, q6\n"                                                                                       \
    "vldrw.u32 q6, [r1, #80]\n"                                                                                      \
    ".else\n"                                                                                                        \
    "vqrdmulh.s32 q0, q0, q5\n"                                                                                      \
    "vldrw.u32 q6, [r1, #64]\n"                                                                                      \
    "vqrdmulh.s32 q1, q1, q5\n"                                                                                      \
    ".if \\sign\n"                                                                                                   \
    "vshr.s32 q5, q0, #31\n"                                                                                         \
    "vmladav.s8 r2, q2, q6\n"                                                                                        \
    "vadd.i32 q0, q0, q5\n"                                                                                          \
    "vshr.s32 q5, q1, #31\n"                                                                                         \
    "vmladav.s8 r10, q3, q6\n"                                                                                       \
    "vadd.i32 q1, q1, q5\n"                                                                                          \
    "vldrw.u32 q5, [r1, #32]\n"                                                                                      \
    ".else\n"                                                                                                        \
    "vldrw.u32 q5, [r1, #32]\n"                                                                                      \
    "vmladav.s8 r2, q2, q6\n"                                                                                        \
    "vmladav.s8 r10, q3, q6\n"                                                                                       \
    ".endif\n"                                                                                                       \
    "vrshl.s32 q0, q0, q5\n"                                                                                         \
    "vldrw.u32 q6, [r1, #80]\n"                                                                                      \
    "vrshl.s32 q1, q1, q5\n"                                                                                         \
    ".endif\n"                                                                                                       \
    "vmladav.s8 r4, q2, q6\n"                                                                                        \
    "vqmovnb.s32 q0, q0\n"                                                                                           \
    "vmladav.s8 r12, q3, q6\n"                                                                                       \
    "vldrw.u32 q6, [r1, #96]\n"                                                                                     \
    "vqmovnt.s32 q0, q1\n"                                                                                           \
    "vmladav.s8 r6, q2, q6\n"                                                                                        \
    "vldrw.u32 q5, [r1, #112]!\n"                                                                                    \
    "vqadd.s16 q0, q0, q7\n"                                                                                         \
    "vmladav.s8 lr, q3, q6\n"                                                                                        \
    ".if \\clamp\n"                                                                                                  \
    "vldrw.u32 q1, [sp, #32]\n"                                                                                      \
    "vmax.s16 q0, q0, q1\n"                                                                                          \
    "vldrw.u32 q1, [sp, #48]\n"                                                                                      \
    "vmin.s16 q0, q0, q1\n"                                                                                          \
    ".else\n"                                                                                                        \
    "vqmovnb.s16 q0, q0\n"                                                                                           \
    ".endif\n"                                                                                                       \
    ".endm\n"

/* On the stack: where products go on; where the last results go; the steps of inputs, of long runs less their length, and of
 * results; the stream behind its first turn; the last channels; of long runs their length and their end; at 32 bounds. */
#define UACCEL_HELIUM_RUNS(name, long, sign, clamp)                                                                  \
    UACCEL_ASSEMBLY void name(struct uaccel_helium_windows *job, const int32_t *stream)                              \
    {                                                                                                                \
        __asm__(UACCEL_HELIUM_TURN_MACROS ".set .Luaccel_long, " #long "\n"                                          \
                "vpush {d8-d15}\n"                                                                                   \
                "push {r4-r11, lr}\n"                                                                                \
                "sub sp, #64\n"                                                                                      \
                "ldrd r3, r5, [r0]\n"                                                                                \
                "ldrd r11, r12, [r0, #8]\n"                                                                          \
                "ldrd r4, r6, [r0, #16]\n"                                                                           \
                "ldrd r2, r8, [r0, #32]\n"                                                                           \
                "ldrd r10, lr, [r0, #40]\n"                                                                          \
                "vldrw.u32 q4, [r0, #48]\n"                                                                          \
                "vdup.16 q7, r8\n"                                                                                   \
                ".if " #clamp "\n"                                                                                   \
                "vdup.16 q0, r10\n"                                                                                  \
                "vdup.16 q1, lr\n"                                                                                   \
                "vstrw.32 q0, [sp, #32]\n"                                                                           \
                "vstrw.32 q1, [sp, #48]\n"                                                                           \
                ".endif\n"                                                                                           \
                "mov r7, r11\n"                                                                                      \
                "add r11, r11, r2\n"                                                                                 \
                "subs r12, #1\n"                                                                                     \
                "mla r12, r12, r6, r11\n"                                                                            \
                ".if " #long "\n"                                                                                    \
                "ldr r8, [r0, #28]\n"                                                                                \
                "subs r4, r4, r8\n"                                                                                  \
                "add r10, r3, r8\n"                                                                                  \
                "strd r8, r10, [sp, #24]\n"                                                                          \
                ".else\n"                                                                                            \
                "add r3, #112\n"                                                                                     \
                "add r5, #112\n"                                                                                     \
                ".endif\n"                                                                                           \
                "strd r12, r4, [sp, #4]\n"                                                                           \
                "add r12, r1, #64\n"                                                                                 \
                "strd r6, r12, [sp, #12]\n"                                                                          \
                "str r2, [sp, #20]\n"                                                                                \
                "ldr r8, [r0, #80]\n"                                                                                \
                "add r1, r1, r8\n"                                                                                   \
                "ldr r8, [r0, #24]\n"                                                                                \
                "adr.w r9, 3f\n"                                                                                     \
                "sub r9, r9, r8\n"                                                                                   \
                "orr r9, r9, #1\n"                                                                                   \
                "str r9, [sp]\n"                                                                                     \
                "b 2f\n"                                                                                             \
                ".balign 4\n"                                                                                        \
                ".if " #long "\n"                                                                                    \
                "8: .rept 15\n"                                                                                      \
                "uaccel_products 0\n"                                                                                \
                ".endr\n"                                                                                            \
                ".else\n"                                                                                            \
                ".irp at, 112, 96, 80, 64, 48, 32, 16, 0, -16, -32, -48, -64, -80, -96\n"                            \
                "uaccel_products \\at\n"                                                                             \
                ".endr\n"                                                                                            \
                ".endif\n"                                                                                           \
                "3:\n"                                                                                               \
                ".if " #long "\n"                                                                                    \
                "ldr r9, [sp, #28]\n"                                                                                \
                "cmp r3, r9\n"                                                                                       \
                "bne.w 8b\n"                                                                                         \
                ".endif\n"                                                                                           \
                "cmp r7, r11\n"                                                                                      \
                "bhs 1f\n"                                                                                           \
                "9:\n"                                                                                               \
                ".if " #long "\n"                                                                                    \
                "ldr r9, [sp, #24]\n"                                                                                \
                "subs r3, r3, r9\n"                                                                                  \
                "subs r5, r5, r9\n"                                                                                  \
                "ldr r9, [sp]\n"                                                                                     \
                ".endif\n"                                                                                           \
                "4: uaccel_turn " #sign ", " #clamp "\n"                                                             \
                "vstrb.16 q0, [r7, q4]\n"                                                                            \
                "adds r7, #4\n"                                                                                      \
                "bx r9\n"                                                                                            \
                /* the next pair */                                                                                  \
                "1: ldr r9, [sp, #4]\n"                                                                              \
                "cmp r11, r9\n"                                                                                      \
                "ldr r9, [sp, #8]\n"                                                                                 \
                "beq 6f\n"                                                                                           \
                "add r3, r9\n"                                                                                       \
                "add r5, r9\n"                                                                                       \
                ".if " #long "\n"                                                                                    \
                "ldr r9, [sp, #24]\n"                                                                                \
                "add r9, r3\n"                                                                                       \
                "str r9, [sp, #28]\n"                                                                                \
                ".endif\n"                                                                                           \
                "uaccel_turn " #sign ", " #clamp "\n"                                                                \
                "ldr r9, [sp, #12]\n"                                                                                \
                "vstrb.16 q0, [r11, q4]\n"                                                                           \
                "ldrd r1, r7, [sp, #16]\n"                                                                           \
                "add r11, r9\n"                                                                                      \
                "ldr r9, [sp]\n"                                                                                     \
                "subs r7, r11, r7\n"                                                                                 \
                "bx r9\n"                                                                                            \
                "2: adr.w r9, 5f + 1\n"                                                                              \
                "b 4b\n"                                                                                             \
                ".balign 4\n"                                                                                        \
                "5: ldr r9, [sp]\n"                                                                                  \
                "ldrd r1, r7, [sp, #16]\n"                                                                           \
                "sub r7, r11, r7\n"                                                                                  \
                "bx r9\n"                                                                                            \
                "6: mov r7, r11\n"                                                                                   \
                "adr.w r9, 7f + 1\n"                                                                                 \
                ".if " #long "\n"                                                                                    \
                "str r9, [sp]\n"                                                                                     \
                "b 9b\n"                                                                                             \
                ".else\n"                                                                                            \
                "b 4b\n"                                                                                             \
                ".endif\n"                                                                                           \
                ".balign 4\n"                                                                                        \
                "7: add sp, #64\n"                                                                                   \
                "pop {r4-r11, lr}\n"                                                                                 \
                "vpop {d8-d15}\n"                                                                                    \
                "bx lr\n"                                                                                            \
                UACCEL_PURGE("uaccel_data, uaccel_products, uaccel_turn"));                                          \
    }

UACCEL_ASSEMBLY_BEGIN

UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_RUNS, uaccel_helium_short_runs, 0)
UACCEL_HELIUM_LOOPS(UACCEL_HELIUM_RUNS, uaccel_helium_long_runs, 1)

UACCEL_ASSEMBLY_END

/* The loop for runs of so many bytes. A constant decides, so that code for the others takes no place. */
UACCEL_KERNEL uaccel_helium_windows_loop *uaccel_helium_loop(const struct uaccel_helium_finish *finish,
                                                             uaccel_index length)
{
    return length <= UACCEL_HELIUM_UNROLLED * 16
               ? UACCEL_HELIUM_LOOP_OF(uaccel_helium_windows_loop, uaccel_helium_short_runs, finish)
               : UACCEL_HELIUM_LOOP_OF(uaccel_helium_windows_loop, uaccel_helium_long_runs, finish);
}

/* What windows of one layer have in common: runs of `length` bytes, and so many channels. Of one to three channels the
 * last one fills up four. */
UACCEL_KERNEL void uaccel_helium_begin(struct uaccel_helium_windows *job, const struct uaccel_helium_finish *finish,
                                       uaccel_index length, uaccel_index channels)
{
    const uaccel_index more = length / 16 - 1;
    job->skip = (more == 0 ? 0 : (more - 1) % UACCEL_HELIUM_UNROLLED + 1) * UACCEL_HELIUM_STEP;
    job->biases = (channels + 3) / 4 * (4 * length + 48) - 48;
    job->length = length;
    job->last = channels < 4 ? 0 : channels - 4;
    job->zero_point = finish->zero_point;
    job->lowest = finish->lowest;
    job->highest = finish->highest;
    const uint16x8_t last = vdupq_n_u16((uint16_t)(channels - 1));
    vstrhq_u16(job->channels, vminq_u16(vshrq_n_u16(vidupq_n_u16(0, 1), 1), last));
}

/* `count` windows of one row, in pairs: `next` bytes from the first of a pair to the second, and `between` from result to
 * result. */
UACCEL_KERNEL void uaccel_helium_row(struct uaccel_helium_windows *job, uaccel_helium_windows_loop *loop,
                                     const int32_t *stream, const int8_t *input, uaccel_index next, int8_t *output,
                                     uaccel_index count, uaccel_index between)
{
    const uaccel_index pairs = count >> 1;
    if (pairs > 0) {
        job->first = input;
        job->second = input + next;
        job->output = output;
        job->pairs = pairs;
        const uint16x8_t second = vreinterpretq_u16_u32(vdupq_n_u32((uint32_t)between << 16));
        vstrhq_u16(job->places, vaddq_u16(vldrhq_u16(job->channels), second));
        loop(job, stream);
    }
    if (count & 1) { /* the last window, twice */
        job->first = job->second = input + pairs * job->input_step;
        job->output = output + pairs * job->output_step;
        job->pairs = 1;
        vstrhq_u16(job->places, vldrhq_u16(job->channels));
        loop(job, stream);
    }
}

#endif
