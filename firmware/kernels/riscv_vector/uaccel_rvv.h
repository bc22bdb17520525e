/* What the kernels for RISC-V's vector extension share (version 1.0, registers of 128 bits or more): sums of up to 32
 * output channels, one a lane, of three pixels at a time, and their last steps; of up to 16 channels six pixels.
 *
 * Channels come in blocks of 32, the last one as it is. Of each block there are the weights, for each input those of
 * its channels, and the constants in four rows: sums at the start, multipliers, offsets, shifts. An offset is the
 * rounding's half and the zero point, both times 2^shift.
 *
 * Everything is assembly, as not every compiler knows vectors, and nothing stays in a vector register between two
 * pieces of it. Interrupts leave vectors alone. */
#ifndef UACCEL_RVV_H
#define UACCEL_RVV_H

#include "uaccel_kernel.h"

#if !defined(__riscv_xlen) || __riscv_xlen != 32
#error "made for RV32 with vectors: name the CPU to the compiler (-march=rv32imac), or compile for another --board"
#endif

enum { UACCEL_RVV_LANES = 32, UACCEL_RVV_FEW = 16 };

struct uaccel_rvv_finish {
    int32_t sign; /* 1: a negative tie is rounded down; 0: it ends below clamp_min, either way */
    int32_t clamp_min, clamp_max;
};

/* Some of all output channels: as many as `lanes`. */
struct uaccel_rvv_block {
    const struct uaccel_rvv_finish *finish;
    const int8_t *weights;
    const int32_t *constants;
    uaccel_index depth, channels, lanes;
};

#define UACCEL_RVV_BEGIN ".option push\n\t.option arch, +v\n\t"
#define UACCEL_RVV_END "\n\t.option pop"
/* GCC before 13 takes -march with vectors, makes no code for them and does not know their registers' names. */
#if defined(__riscv_vector) && (defined(__clang__) || __GNUC__ >= 13)
#define UACCEL_RVV_CLOBBERS                                                                                          \
    "memory", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15",  \
        "v16", "v17", "v18", "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31"
#else
#define UACCEL_RVV_CLOBBERS "memory"
#endif

/* How many registers hold a block of words, of halves and of bytes: eight, four and two, or half of that. */
#define UACCEL_RVV_WORDS(registers) "vsetvli zero, %[lanes], e32, " registers ", ta, ma\n\t"
#define UACCEL_RVV_HALVES(registers) "vsetvli zero, %[lanes], e16, " registers ", ta, ma\n\t"
#define UACCEL_RVV_BYTES(registers) "vsetvli zero, %[lanes], e8, " registers ", ta, ma\n\t"

/* The next row of constants. */
#define UACCEL_RVV_CONSTANTS(to)                                                                                     \
    "vle32.v " to ", (%[constants])\n\t"                                                                             \
    "add %[constants], %[constants], %[a]\n\t"
/* The sums at the start, in v8 and behind it. */
#define UACCEL_RVV_START "slli %[a], %[lanes], 2\n\t" UACCEL_RVV_CONSTANTS("v8")
#define UACCEL_RVV_COPY(to) "vmv.v.v " to ", v8\n\t"

/* What is done with one, three or six sums. */
#define UACCEL_RVV_ON1(what) what("v8")
#define UACCEL_RVV_ON3(what) what("v8") what("v16") what("v24")
#define UACCEL_RVV_ON6(what) what("v8") what("v12") what("v16") what("v20") what("v24") what("v28")
/* VSMUL that rounds halves upwards (vxrm, 0x00a, is 0) gives sum * multiplier / 2^31, rounded. */
#define UACCEL_RVV_MULTIPLY(sum) "vsmul.vv " sum ", " sum ", v0\n\t"
/* Minus one to what is negative. */
#define UACCEL_RVV_SIGN(sum) "vsra.vi v0, " sum ", 31\n\tvadd.vv " sum ", " sum ", v0\n\t"
#define UACCEL_RVV_ADD(sum) "vadd.vv " sum ", " sum ", v0\n\t"
#define UACCEL_RVV_SHIFT(sum) "vsra.vv " sum ", " sum ", v0\n\t"
#define UACCEL_RVV_NARROW(sum) "vnclip.wi " sum ", " sum ", 0\n\t"
#define UACCEL_RVV_CLAMP(sum)                                                                                        \
    "vmax.vx " sum ", " sum ", %[low]\n\t"                                                                           \
    "vmin.vx " sum ", " sum ", %[high]\n\t"
#define UACCEL_RVV_STORE(sum) UACCEL_RVV_NARROW(sum) UACCEL_RVV_CLAMP(sum) "vse8.v " sum ", (%[output])\n\t"
/* Of one pixel; the last one ends it. */
#define UACCEL_RVV_STORE_NEXT(sum)                                                                                   \
    UACCEL_RVV_STORE(sum)                                                                                            \
    "beq %[output], %[last], 8f\n\t"                                                                                 \
    "add %[output], %[output], %[channels]\n\t"
#define UACCEL_RVV_FINISH(on, words, halves, bytes)                                                                  \
    "csrwi 0x00a, 0\n\t" UACCEL_RVV_WORDS(words) "slli %[a], %[lanes], 2\n\t" UACCEL_RVV_CONSTANTS("v0")             \
        on(UACCEL_RVV_MULTIPLY) "beqz %[sign], 9f\n\t" on(UACCEL_RVV_SIGN)                                           \
    "9:\n\t" UACCEL_RVV_CONSTANTS("v0") on(UACCEL_RVV_ADD) UACCEL_RVV_CONSTANTS("v0") on(UACCEL_RVV_SHIFT)           \
        UACCEL_RVV_HALVES(halves) on(UACCEL_RVV_NARROW) UACCEL_RVV_BYTES(bytes) on(UACCEL_RVV_STORE_NEXT) "8:\n\t"

/* Weights of one input, as bytes and then as halves in v4 and behind it. */
#define UACCEL_RVV_WEIGHTS(bytes)                                                                                    \
    "vle8.v " bytes ", (%[weights])\n\t"                                                                             \
    "add %[weights], %[weights], %[lanes]\n\t"
#define UACCEL_RVV_WIDEN(bytes) "vsext.vf2 v4, " bytes "\n\t"
#define UACCEL_RVV_LOAD(register, at, input) "lb %[" register "], " at "(%[input" input "])\n\t"
#define UACCEL_RVV_PRODUCT(sum, register) "vwmacc.vx " sum ", %[" register "], v4\n\t"
#define UACCEL_RVV_INPUT1(bytes, at)                                                                                 \
    UACCEL_RVV_WEIGHTS(bytes) UACCEL_RVV_LOAD("a", at, "0") UACCEL_RVV_WIDEN(bytes) UACCEL_RVV_PRODUCT("v8", "a")
#define UACCEL_RVV_INPUT3(bytes, at)                                                                                 \
    UACCEL_RVV_WEIGHTS(bytes)                                                                                        \
    UACCEL_RVV_LOAD("a", at, "0") UACCEL_RVV_LOAD("b", at, "1") UACCEL_RVV_WIDEN(bytes)                              \
    UACCEL_RVV_LOAD("c", at, "2") UACCEL_RVV_PRODUCT("v8", "a") UACCEL_RVV_PRODUCT("v16", "b")                       \
    UACCEL_RVV_PRODUCT("v24", "c")
#define UACCEL_RVV_INPUT6(bytes, at)                                                                                 \
    UACCEL_RVV_WEIGHTS(bytes)                                                                                        \
    UACCEL_RVV_LOAD("a", at, "0") UACCEL_RVV_LOAD("b", at, "1") UACCEL_RVV_WIDEN(bytes)                              \
    UACCEL_RVV_LOAD("c", at, "2") UACCEL_RVV_PRODUCT("v8", "a") UACCEL_RVV_LOAD("a", at, "3")                        \
    UACCEL_RVV_PRODUCT("v12", "b") UACCEL_RVV_LOAD("b", at, "4") UACCEL_RVV_PRODUCT("v16", "c")                      \
    UACCEL_RVV_LOAD("c", at, "5") UACCEL_RVV_PRODUCT("v20", "a") UACCEL_RVV_PRODUCT("v24", "b")                      \
    UACCEL_RVV_PRODUCT("v28", "c")
#define UACCEL_RVV_MOVE(input, count) "addi %[input" input "], %[input" input "], " count "\n\t"
#define UACCEL_RVV_MOVE1(count) UACCEL_RVV_MOVE("0", count)
#define UACCEL_RVV_MOVE3(count) UACCEL_RVV_MOVE1(count) UACCEL_RVV_MOVE("1", count) UACCEL_RVV_MOVE("2", count)
#define UACCEL_RVV_MOVE6(count)                                                                                      \
    UACCEL_RVV_MOVE3(count) UACCEL_RVV_MOVE("3", count) UACCEL_RVV_MOVE("4", count) UACCEL_RVV_MOVE("5", count)
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

/* What all have among their operands. */
#define UACCEL_RVV_OUT(input, a)                                                                                     \
    [input0] "+&r"(input), [weights] "+&r"(weights), [constants] "+&r"(constants), [output] "+&r"(output), [a] "=&r"(a)
#define UACCEL_RVV_IN(p, input, count)                                                                               \
    [fours] "r"((input) + ((p)->depth & ~3)), [end] "r"((input) + (p)->depth), [lanes] "r"((p)->lanes),              \
        [sign] "r"((p)->finish->sign), [low] "r"((p)->finish->clamp_min), [high] "r"((p)->finish->clamp_max),        \
        [last] "r"(output + ((count) - 1) * (p)->channels), [channels] "r"((p)->channels)

UACCEL_SHARED void uaccel_rvv_one(const struct uaccel_rvv_block *p, const int8_t *input, int8_t *output)
{
    const int8_t *weights = p->weights;
    const int32_t *constants = p->constants;
    int32_t a;
    __asm volatile(UACCEL_RVV_BEGIN UACCEL_RVV_WORDS("m8") UACCEL_RVV_START UACCEL_RVV_HALVES("m4")
                       UACCEL_RVV_INPUTS(UACCEL_RVV_INPUT1, UACCEL_RVV_MOVE1)
                           UACCEL_RVV_FINISH(UACCEL_RVV_ON1, "m8", "m4", "m2") UACCEL_RVV_END
                   : UACCEL_RVV_OUT(input, a)
                   : UACCEL_RVV_IN(p, input, 1)
                   : UACCEL_RVV_CLOBBERS);
}

/* Two or three pixels. */
UACCEL_SHARED void uaccel_rvv_three(const struct uaccel_rvv_block *p, const int8_t *input, uaccel_index count,
                                    int8_t *output)
{
    const int8_t *weights = p->weights, *input1 = input + p->depth, *input2 = input + (count - 1) * p->depth;
    const int32_t *constants = p->constants;
    int32_t a, b, c;
    __asm volatile(UACCEL_RVV_BEGIN UACCEL_RVV_WORDS("m8") UACCEL_RVV_START UACCEL_RVV_COPY("v16")
                       UACCEL_RVV_COPY("v24") UACCEL_RVV_HALVES("m4")
                           UACCEL_RVV_INPUTS(UACCEL_RVV_INPUT3, UACCEL_RVV_MOVE3)
                               UACCEL_RVV_FINISH(UACCEL_RVV_ON3, "m8", "m4", "m2") UACCEL_RVV_END
                   : UACCEL_RVV_OUT(input, a), [input1] "+&r"(input1), [input2] "+&r"(input2), [b] "=&r"(b),
                     [c] "=&r"(c)
                   : UACCEL_RVV_IN(p, input, count)
                   : UACCEL_RVV_CLOBBERS);
}

/* Four to six pixels of no more than 16 channels. */
UACCEL_SHARED void uaccel_rvv_six(const struct uaccel_rvv_block *p, const int8_t *input, uaccel_index count,
                                  int8_t *output)
{
    const uaccel_index depth = p->depth;
    const int8_t *weights = p->weights, *input1 = input + depth, *input2 = input1 + depth, *input3 = input2 + depth;
    const int8_t *input4 = count > 4 ? input3 + depth : input, *input5 = count > 5 ? input4 + depth : input;
    const int32_t *constants = p->constants;
    int32_t a, b, c;
    __asm volatile(UACCEL_RVV_BEGIN UACCEL_RVV_WORDS("m4") UACCEL_RVV_START UACCEL_RVV_COPY("v12")
                       UACCEL_RVV_COPY("v16") UACCEL_RVV_COPY("v20") UACCEL_RVV_COPY("v24") UACCEL_RVV_COPY("v28")
                           UACCEL_RVV_HALVES("m2") UACCEL_RVV_INPUTS(UACCEL_RVV_INPUT6, UACCEL_RVV_MOVE6)
                               UACCEL_RVV_FINISH(UACCEL_RVV_ON6, "m4", "m2", "m1") UACCEL_RVV_END
                   : UACCEL_RVV_OUT(input, a), [input1] "+&r"(input1), [input2] "+&r"(input2),
                     [input3] "+&r"(input3), [input4] "+&r"(input4), [input5] "+&r"(input5), [b] "=&r"(b),
                     [c] "=&r"(c)
                   : UACCEL_RVV_IN(p, input, count)
                   : UACCEL_RVV_CLOBBERS);
}

/* How many pixels are taken at a time. */
UACCEL_KERNEL uaccel_index uaccel_rvv_together(uaccel_index lanes)
{
    return lanes > 0 && lanes <= UACCEL_RVV_FEW ? 6 : 3;
}

/* One block of channels of pixels or rows side by side. */
UACCEL_SHARED void uaccel_rvv_pixels(const struct uaccel_rvv_block *p, const int8_t *input, uaccel_index count,
                                     int8_t *output)
{
    const uaccel_index together = uaccel_rvv_together(p->lanes);
    while (count > 1) {
        const uaccel_index now = count < together ? count : together;
        if (now > 3) {
            uaccel_rvv_six(p, input, now, output);
        } else {
            uaccel_rvv_three(p, input, now, output);
        }
        input += now * p->depth;
        output += now * p->channels;
        count -= now;
    }
    if (count > 0) {
        uaccel_rvv_one(p, input, output);
    }
}

/* All output channels; `block` is the beginning. */
UACCEL_SHARED void uaccel_rvv_channels(struct uaccel_rvv_block block, const int8_t *input, uaccel_index count,
                                       int8_t *output)
{
    for (uaccel_index rest = block.channels; rest > 0; rest -= UACCEL_RVV_LANES) {
        block.lanes = rest < UACCEL_RVV_LANES ? rest : UACCEL_RVV_LANES;
        uaccel_rvv_pixels(&block, input, count, output);
        block.weights += block.lanes * block.depth;
        block.constants += 4 * block.lanes;
        output += block.lanes;
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
