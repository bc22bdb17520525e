/* What the kernels for RISC-V's vector extension share (version 1.0, registers of 128 bits or more): sums of up to 32
 * output channels, one a lane, of three pixels at a time, and their last steps.
 *
 * Channels come in blocks of 32, the last one as it is. Of each block there are the weights, for each input those of
 * its channels, and the constants in four rows: sums at the start, multipliers, offsets, shifts. An offset is the
 * rounding's half and the zero point, both times 2^shift.
 *
 * Everything is assembly, as not every compiler knows vectors, and nothing stays in a vector register between two
 * blocks of it. Interrupts leave vectors alone. */
#ifndef UACCEL_RVV_H
#define UACCEL_RVV_H

#include "uaccel_kernel.h"

#if !defined(__riscv_xlen) || __riscv_xlen != 32
#error "this model was compiled for RV32 with the vector extension; compile it again with --board and your board"
#endif

enum { UACCEL_RVV_LANES = 32 };

struct uaccel_rvv_finish {
    int32_t sign; /* 1: a negative tie is rounded down; 0: it ends below clamp_min, either way */
    int32_t clamp_min, clamp_max;
};

/* Three pixels or rows, of which one may stand for another again, and where their results go. */
struct uaccel_rvv_three {
    const int8_t *inputs[3];
    int8_t *outputs[3];
};

#define UACCEL_RVV_BEGIN ".option push\n\t.option arch, +v\n\t"
#define UACCEL_RVV_END "\n\t.option pop"
#ifdef __riscv_vector
#define UACCEL_RVV_CLOBBERS                                                                                          \
    "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",  \
        "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define UACCEL_RVV_CLOBBERS "memory"
#endif

/* Sums at the start, in v8 to v15; `a` is a register to use. Behind it elements have 16 bits. */
#define UACCEL_RVV_START                                                                                             \
    "vsetvli zero, %[lanes], e32, m8, ta, ma\n\t"                                                                    \
    "slli %[a], %[lanes], 2\n\t"                                                                                     \
    "vle32.v v8, (%[constants])\n\t"                                                                                 \
    "add %[constants], %[constants], %[a]\n\t"
#define UACCEL_RVV_COPY_START                                                                                        \
    "vmv.v.v v16, v8\n\t"                                                                                            \
    "vmv.v.v v24, v8\n\t"
#define UACCEL_RVV_HALVES "vsetvli zero, %[lanes], e16, m4, ta, ma\n\t"

/* The next row of constants, in v0 to v7. */
#define UACCEL_RVV_CONSTANTS                                                                                         \
    "vle32.v v0, (%[constants])\n\t"                                                                                 \
    "add %[constants], %[constants], %[a]\n\t"
/* One operation on a sum, and a register of constants. */
#define UACCEL_RVV_ON1(operation) operation " v8, v8, v0\n\t"
#define UACCEL_RVV_ON3(operation) UACCEL_RVV_ON1(operation) operation " v16, v16, v0\n\t" operation " v24, v24, v0\n\t"
/* Minus one to what is negative. */
#define UACCEL_RVV_SIGN(sum) "vsra.vi v0, " sum ", 31\n\tvadd.vv " sum ", " sum ", v0\n\t"
#define UACCEL_RVV_BYTES(sum) "vnclip.wi " sum ", " sum ", 0\n\t"
#define UACCEL_RVV_STORE(sum, output)                                                                                \
    "vnclip.wi " sum ", " sum ", 0\n\t"                                                                              \
    "vmax.vx " sum ", " sum ", %[low]\n\t"                                                                           \
    "vmin.vx " sum ", " sum ", %[high]\n\t"                                                                          \
    "vse8.v " sum ", (%[" output "])\n\t"
/* VSMUL that rounds halves upwards (vxrm, 0x00a, is 0) gives sum * multiplier / 2^31, rounded. */
#define UACCEL_RVV_FINISH(on, signs, halves, stores)                                                                 \
    "vsetvli zero, %[lanes], e32, m8, ta, ma\n\t"                                                                    \
    "slli %[a], %[lanes], 2\n\t"                                                                                     \
    "csrwi 0x00a, 0\n\t" UACCEL_RVV_CONSTANTS on("vsmul.vv") "beqz %[sign], 9f\n\t" signs                            \
    "9:\n\t" UACCEL_RVV_CONSTANTS on("vadd.vv") UACCEL_RVV_CONSTANTS on("vsra.vv") UACCEL_RVV_HALVES halves          \
    "vsetvli zero, %[lanes], e8, m2, ta, ma\n\t" stores
#define UACCEL_RVV_FINISH1                                                                                           \
    UACCEL_RVV_FINISH(UACCEL_RVV_ON1, UACCEL_RVV_SIGN("v8"), UACCEL_RVV_BYTES("v8"), UACCEL_RVV_STORE("v8", "output0"))
#define UACCEL_RVV_FINISH3                                                                                           \
    UACCEL_RVV_FINISH(UACCEL_RVV_ON3, UACCEL_RVV_SIGN("v8") UACCEL_RVV_SIGN("v16") UACCEL_RVV_SIGN("v24"),           \
                      UACCEL_RVV_BYTES("v8") UACCEL_RVV_BYTES("v16") UACCEL_RVV_BYTES("v24"),                        \
                      UACCEL_RVV_STORE("v8", "output0") UACCEL_RVV_STORE("v16", "output1")                           \
                          UACCEL_RVV_STORE("v24", "output2"))

/* Weights of one input, into v4 to v7; `bytes` is a free vector register. */
#define UACCEL_RVV_WEIGHTS(bytes)                                                                                    \
    "vle8.v " bytes ", (%[weights])\n\t"                                                                             \
    "add %[weights], %[weights], %[lanes]\n\t"
#define UACCEL_RVV_INPUT1(bytes, at)                                                                                 \
    UACCEL_RVV_WEIGHTS(bytes)                                                                                        \
    "lb %[a], " at "(%[input0])\n\t"                                                                                 \
    "vsext.vf2 v4, " bytes "\n\t"                                                                                    \
    "vwmacc.vx v8, %[a], v4\n\t"
#define UACCEL_RVV_INPUT3(bytes, at)                                                                                 \
    UACCEL_RVV_WEIGHTS(bytes)                                                                                        \
    "lb %[a], " at "(%[input0])\n\t"                                                                                 \
    "lb %[b], " at "(%[input1])\n\t"                                                                                 \
    "vsext.vf2 v4, " bytes "\n\t"                                                                                    \
    "lb %[c], " at "(%[input2])\n\t"                                                                                 \
    "vwmacc.vx v8, %[a], v4\n\t"                                                                                     \
    "vwmacc.vx v16, %[b], v4\n\t"                                                                                    \
    "vwmacc.vx v24, %[c], v4\n\t"
#define UACCEL_RVV_MOVE1(count) "addi %[input0], %[input0], " count "\n\t"
#define UACCEL_RVV_MOVE3(count)                                                                                      \
    UACCEL_RVV_MOVE1(count)                                                                                          \
    "addi %[input1], %[input1], " count "\n\t"                                                                       \
    "addi %[input2], %[input2], " count "\n\t"
/* All inputs, four of them at a time up to `fours`. */
#define UACCEL_RVV_INPUTS(one, move)                                                                                 \
    "beq %[input0], %[fours], 2f\n"                                                                                  \
    "1:\n\t" one("v0", "0") one("v2", "1") one("v0", "2") one("v2", "3") move("4")                                   \
    "bne %[input0], %[fours], 1b\n"                                                                                  \
    "2:\n\t"                                                                                                         \
    "beq %[input0], %[end], 4f\n"                                                                                    \
    "3:\n\t" one("v0", "0") move("1")                                                                                \
    "bne %[input0], %[end], 3b\n"                                                                                    \
    "4:\n\t"

/* One block of channels of three pixels. */
UACCEL_SHARED void uaccel_rvv_block3(const struct uaccel_rvv_finish *p, const struct uaccel_rvv_three *three,
                                     uaccel_index depth, const int8_t *weights, const int32_t *constants,
                                     uaccel_index lanes, uaccel_index channel)
{
    const int8_t *input0 = three->inputs[0], *input1 = three->inputs[1], *input2 = three->inputs[2];
    int32_t a, b, c;
    __asm volatile(UACCEL_RVV_BEGIN UACCEL_RVV_START UACCEL_RVV_COPY_START UACCEL_RVV_HALVES UACCEL_RVV_INPUTS(
                       UACCEL_RVV_INPUT3, UACCEL_RVV_MOVE3) UACCEL_RVV_FINISH3 UACCEL_RVV_END
                   : [input0] "+&r"(input0), [input1] "+&r"(input1), [input2] "+&r"(input2), [weights] "+&r"(weights),
                     [constants] "+&r"(constants), [a] "=&r"(a), [b] "=&r"(b), [c] "=&r"(c)
                   : [fours] "r"(input0 + (depth & ~3)), [end] "r"(input0 + depth), [lanes] "r"(lanes),
                     [sign] "r"(p->sign), [low] "r"(p->clamp_min), [high] "r"(p->clamp_max),
                     [output0] "r"(three->outputs[0] + channel), [output1] "r"(three->outputs[1] + channel),
                     [output2] "r"(three->outputs[2] + channel)
                   : UACCEL_RVV_CLOBBERS);
}

/* One block of channels of one pixel. */
UACCEL_SHARED void uaccel_rvv_block1(const struct uaccel_rvv_finish *p, const int8_t *input0, uaccel_index depth,
                                     const int8_t *weights, const int32_t *constants, uaccel_index lanes,
                                     int8_t *output)
{
    int32_t a;
    __asm volatile(UACCEL_RVV_BEGIN UACCEL_RVV_START UACCEL_RVV_HALVES UACCEL_RVV_INPUTS(
                       UACCEL_RVV_INPUT1, UACCEL_RVV_MOVE1) UACCEL_RVV_FINISH1 UACCEL_RVV_END
                   : [input0] "+&r"(input0), [weights] "+&r"(weights), [constants] "+&r"(constants), [a] "=&r"(a)
                   : [fours] "r"(input0 + (depth & ~3)), [end] "r"(input0 + depth), [lanes] "r"(lanes),
                     [sign] "r"(p->sign), [low] "r"(p->clamp_min), [high] "r"(p->clamp_max), [output0] "r"(output)
                   : UACCEL_RVV_CLOBBERS);
}

/* All output channels of up to three pixels. */
UACCEL_SHARED void uaccel_rvv_channels(const struct uaccel_rvv_finish *p, const struct uaccel_rvv_three *three,
                                       uaccel_index pixels, uaccel_index depth, const int8_t *weights,
                                       const int32_t *constants, uaccel_index channels)
{
    for (uaccel_index channel = 0; channel < channels; channel += UACCEL_RVV_LANES) {
        const uaccel_index rest = channels - channel;
        const uaccel_index lanes = rest < UACCEL_RVV_LANES ? rest : UACCEL_RVV_LANES;
        if (pixels > 1) {
            uaccel_rvv_block3(p, three, depth, weights, constants, lanes, channel);
        } else {
            uaccel_rvv_block1(p, three->inputs[0], depth, weights, constants, lanes, three->outputs[0] + channel);
        }
        weights += lanes * depth;
        constants += 4 * lanes;
    }
}

/* All output channels of pixels or rows side by side. */
UACCEL_SHARED void uaccel_rvv_pixels(const struct uaccel_rvv_finish *p, const int8_t *input, uaccel_index pixels,
                                     uaccel_index depth, const int8_t *weights, const int32_t *constants,
                                     uaccel_index channels, int8_t *output)
{
    for (uaccel_index left = pixels; left > 0; left -= 3) {
        const uaccel_index second = left > 1 ? 1 : 0, third = left > 2 ? 2 : 0;
        const struct uaccel_rvv_three three = {
            {input, input + second * depth, input + third * depth},
            {output, output + second * channels, output + third * channels},
        };
        uaccel_rvv_channels(p, &three, left, depth, weights, constants, channels);
        input += 3 * depth;
        output += 3 * channels;
    }
}

/* Bytes to another place, or one byte everywhere: cheaper than a call where they are few. Where they end. */
UACCEL_KERNEL int8_t *uaccel_rvv_copy(int8_t *to, const int8_t *from, uaccel_index count)
{
    uaccel_index now;
    if (count > 0) {
        __asm volatile(UACCEL_RVV_BEGIN "1:\n\t"
                                        "vsetvli %[now], %[count], e8, m8, ta, ma\n\t"
                                        "vle8.v v0, (%[from])\n\t"
                                        "sub %[count], %[count], %[now]\n\t"
                                        "add %[from], %[from], %[now]\n\t"
                                        "vse8.v v0, (%[to])\n\t"
                                        "add %[to], %[to], %[now]\n\t"
                                        "bnez %[count], 1b" UACCEL_RVV_END
                       : [to] "+&r"(to), [from] "+&r"(from), [count] "+&r"(count), [now] "=&r"(now)
                       :
                       : UACCEL_RVV_CLOBBERS);
    }
    return to;
}

UACCEL_KERNEL int8_t *uaccel_rvv_fill(int8_t *to, int32_t value, uaccel_index count)
{
    uaccel_index now;
    if (count > 0) {
        __asm volatile(UACCEL_RVV_BEGIN "1:\n\t"
                                        "vsetvli %[now], %[count], e8, m8, ta, ma\n\t"
                                        "vmv.v.x v0, %[value]\n\t"
                                        "sub %[count], %[count], %[now]\n\t"
                                        "vse8.v v0, (%[to])\n\t"
                                        "add %[to], %[to], %[now]\n\t"
                                        "bnez %[count], 1b" UACCEL_RVV_END
                       : [to] "+&r"(to), [count] "+&r"(count), [now] "=&r"(now)
                       : [value] "r"(value)
                       : UACCEL_RVV_CLOBBERS);
    }
    return to;
}

#endif
