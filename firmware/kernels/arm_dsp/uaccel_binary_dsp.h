/* Elementwise operators of two inputs for Arm's DSP extension. */
#ifndef UACCEL_BINARY_DSP_H
#define UACCEL_BINARY_DSP_H

#include "uaccel_dsp.h"

/* Addition and subtraction of int8 tensors with broadcasting for Arm's DSP extension. */

/* One input on the common scale: ((value << shift) + offset) * multiplier / 2^32, rounded, and then halves of
 * 2^exponent away from zero; with a multiplier of 0 it is what stands in the brackets. All of it comes doubled. */
struct uaccel_add_dsp_side {
    int32_t shift, offset, multiplier, exponent;
};

struct uaccel_add_dsp {
    uaccel_index extents[6], strides1[6], strides2[6]; /* as those of uaccel_binary.h */
    struct uaccel_add_dsp_side first, second;
    int32_t multiplier, offset, shift; /* of the sum, as those of struct uaccel_dsp_finish */
    int32_t clamp_min, clamp_max;
    int32_t subtract; /* 1: first - second */
};

/* Twice the value on the common scale. */
UACCEL_KERNEL int32_t uaccel_add_dsp_raise(const struct uaccel_add_dsp_side *p, int32_t value)
{
    const int32_t raised = (int32_t)((uint32_t)value << p->shift) + p->offset;
    if (p->multiplier == 0) {
        return raised;
    }
    const int32_t high = uaccel_dsp_high(raised, p->multiplier);
    if (p->exponent == 0) {
        return high * 2;
    }
    return ((high + (high >> 31) + (1 << p->exponent >> 1)) >> p->exponent) * 2;
}

/* The result of both, which are on the common scale. */
UACCEL_KERNEL int32_t uaccel_add_dsp_one(const struct uaccel_add_dsp *p, int32_t first, int32_t second)
{
    const int32_t high = uaccel_dsp_high(p->subtract ? first - second : first + second, p->multiplier);
    const int32_t value = (high + (high >> 31) + p->offset) >> p->shift;
    const int32_t scaled = (int32_t)__builtin_arm_ssat(value, 8); /* __ssat() itself gives warnings */
    return uaccel_dsp_bounded(scaled, p->clamp_min, p->clamp_max, INT8_MIN, INT8_MAX);
}

/* An input's value on the common scale, of a byte in a word; `once` where the row repeats one value. */
UACCEL_KERNEL int32_t uaccel_add_dsp_byte(const struct uaccel_add_dsp_side *p, bool repeats, int32_t once, uint32_t word,
                                          int32_t shift)
{
    return repeats ? once : uaccel_add_dsp_raise(p, (int8_t)(word >> shift));
}

/* Four elements, or one. */
UACCEL_KERNEL void uaccel_add_dsp_some(const struct uaccel_add_dsp *p, const int8_t *input1, int32_t once1,
                                       const int8_t *input2, int32_t once2, bool four, int8_t *output)
{
    const bool repeats1 = p->strides1[5] == 0, repeats2 = p->strides2[5] == 0;
    uint32_t first = 0, second = 0;
    if (!repeats1) {
        memcpy(&first, input1, four ? 4 : 1);
    }
    if (!repeats2) {
        memcpy(&second, input2, four ? 4 : 1);
    }
#define UACCEL_ADD_DSP_BYTE(number)                                              \
    output[number] = (int8_t)uaccel_add_dsp_one(                                 \
        p, uaccel_add_dsp_byte(&p->first, repeats1, once1, first, 8 * (number)), \
        uaccel_add_dsp_byte(&p->second, repeats2, once2, second, 8 * (number)))
    UACCEL_ADD_DSP_BYTE(0);
    if (four) {
        UACCEL_ADD_DSP_BYTE(1);
        UACCEL_ADD_DSP_BYTE(2);
        UACCEL_ADD_DSP_BYTE(3);
    }
#undef UACCEL_ADD_DSP_BYTE
}

/* The output may be an input of its size. */
UACCEL_KERNEL void uaccel_add_dsp_s8(const struct uaccel_add_dsp *p, const int8_t *input1, const int8_t *input2,
                                     int8_t *output)
{
    const uaccel_index *s1 = p->strides1, *s2 = p->strides2;
    UACCEL_OUTER_LOOPS {
        const int8_t *x = input1 + UACCEL_OUTER_AT(s1);
        const int8_t *y = input2 + UACCEL_OUTER_AT(s2);
        const int32_t once1 = uaccel_add_dsp_raise(&p->first, *x), once2 = uaccel_add_dsp_raise(&p->second, *y);
        uaccel_index left = p->extents[5];
        for (; left >= 4; left -= 4) {
            uaccel_add_dsp_some(p, x, once1, y, once2, true, output);
            x += 4 * s1[5];
            y += 4 * s2[5];
            output += 4;
        }
        for (; left > 0; --left) {
            uaccel_add_dsp_some(p, x, once1, y, once2, false, output++);
            x += s1[5];
            y += s2[5];
        }
    }
}

/* Addition and subtraction of int8 tensors of one shape for Arm's DSP extension, where both inputs' weights and one
 * rounding at the end give the same bytes as three roundings: the compiler has tried all pairs of values. */

/* Of values x and y the result is (start + x * first + y * second) / 2^21, saturated. Weights have 8 bits more, and
 * each product is rounded down after it lost those. */
struct uaccel_add_linear_dsp {
    int32_t first, second, start;
    uaccel_index elements;
};
UACCEL_AT4(uaccel_add_linear_dsp, 0, first, second, start, elements);

UACCEL_ASSEMBLY_BEGIN

/* Four elements at a time, two times in a row, and one time at least; what remains is left. Halves of words hold 256 times a value. */
UACCEL_ASSEMBLY void uaccel_add_linear_dsp_fours(const struct uaccel_add_linear_dsp *p, const int8_t *input1,
                                                 const int8_t *input2, int8_t *output)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_four\n"
            "ldr r8, [r1], #4\n"
            "ldr r10, [r2], #4\n"
            "and r9, r0, r8, lsl #8\n"
            "and r8, r0, r8\n"
            "and r11, r0, r10, lsl #8\n"
            "and r10, r0, r10\n"
            "smlawb r12, r4, r9, r6\n"
            "smlawt r9, r4, r9, r6\n"
            "smlawb lr, r4, r8, r6\n"
            "smlawt r8, r4, r8, r6\n"
            "smlawb r12, r5, r11, r12\n"
            "smlawt r9, r5, r11, r9\n"
            "smlawb lr, r5, r10, lr\n"
            "smlawt r8, r5, r10, r8\n"
            "ssat r12, #8, r12, asr #21\n"
            "ssat lr, #8, lr, asr #21\n"
            "ssat r9, #8, r9, asr #21\n"
            "ssat r8, #8, r8, asr #21\n"
            "bfi r12, lr, #8, #8\n"
            "bfi r12, r9, #16, #8\n"
            "bfi r12, r8, #24, #8\n"
            "str r12, [r3], #4\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "ldmia r0, {r4-r7}\n"
            "mov r0, #0xFF00FF00\n"
            "bic r12, r7, #3\n"
            "tst r7, #4\n"
            "add r7, r12, r3\n" /* where the output ends */
            "bne 2f\n"
            "1: uaccel_four\n"
            "2: uaccel_four\n"
            "cmp r3, r7\n"
            "bne 1b\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_four\n");
}
UACCEL_ASSEMBLY_END

/* The output may be an input. */
UACCEL_SHARED void uaccel_add_linear_dsp_s8(const struct uaccel_add_linear_dsp *p, const int8_t *input1,
                                            const int8_t *input2, int8_t *output)
{
    const uaccel_index fours = p->elements & ~3;
    if (fours > 0) {
        uaccel_add_linear_dsp_fours(p, input1, input2, output);
    }
    for (uaccel_index i = fours; i < p->elements; ++i) {
        const int32_t x = (int32_t)((int64_t)p->first * input1[i] >> 8);
        const int32_t y = (int32_t)((int64_t)p->second * input2[i] >> 8);
        output[i] = (int8_t)__builtin_arm_ssat((p->start + x + y) >> 21, 8);
    }
}

/* Multiplication of quantised tensors with broadcasting for Arm's DSP extension: int8, and int16 without zero points. */
struct uaccel_mul_dsp {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2;
    int32_t multiplier, offset, shift; /* as those of struct uaccel_dsp_finish */
    int32_t sign;                      /* 1: a negative tie is rounded down */
    int32_t clamp_min, clamp_max;
};

/* One product on the output's scale, within the bounds and `bits` bits. */
UACCEL_KERNEL int32_t uaccel_mul_dsp_finish(const struct uaccel_mul_dsp *p, int32_t product, bool bytes)
{
    int32_t value;
    __asm__("qadd %0, %1, %1\n\t"
            "smmulr %0, %0, %2"
            : "=&r"(value)
            : "r"(product), "r"(p->multiplier));
    if (p->sign) {
        value += value >> 31;
    }
    value = (value + p->offset) >> p->shift;
    value = bytes ? (int32_t)__builtin_arm_ssat(value, 8) : (int32_t)__builtin_arm_ssat(value, 16);
    return uaccel_dsp_bounded(value, p->clamp_min, p->clamp_max, bytes ? INT8_MIN : INT16_MIN,
                              bytes ? INT8_MAX : INT16_MAX);
}

/* One value, less its zero point, in both halves of a word. */
UACCEL_KERNEL uint32_t uaccel_mul_dsp_twice(int32_t value)
{
    return (uint32_t)(value & 0xFFFF) * 0x00010001u;
}

/* Bytes 0 and 2 of a word with `offset`, which stays, added to each; with `odd` bytes 1 and 3. */
UACCEL_KERNEL uint32_t uaccel_mul_dsp_widen(uint32_t offset, uint32_t word, bool odd)
{
    uint32_t halves;
    if (odd) {
        __asm__("sxtab16 %0, %1, %2, ror #8" : "=r"(halves) : "r"(offset), "r"(word));
    } else {
        __asm__("sxtab16 %0, %1, %2" : "=r"(halves) : "r"(offset), "r"(word));
    }
    return halves;
}

UACCEL_KERNEL int32_t uaccel_mul_dsp_low(uint32_t x, uint32_t y)
{
    return (int16_t)x * (int16_t)y;
}

UACCEL_KERNEL int32_t uaccel_mul_dsp_high(uint32_t x, uint32_t y)
{
    return ((int32_t)x >> 16) * ((int32_t)y >> 16);
}

/* Four elements, `x` and `y` of two words each: of bytes even and odd ones, of halves the first two and the others.
 * With a step of 0 an input is the same along the row, and its word has its value twice. */
UACCEL_KERNEL void uaccel_mul_dsp_load_s8(const int8_t *row, uaccel_index step, int32_t zero_point, uint32_t *words)
{
    if (step != 0) {
        const uint32_t offset = uaccel_mul_dsp_twice(-zero_point);
        const uint32_t word = uaccel_dsp_load(row);
        words[0] = uaccel_mul_dsp_widen(offset, word, false);
        words[1] = uaccel_mul_dsp_widen(offset, word, true);
    } else {
        words[0] = words[1] = uaccel_mul_dsp_twice(*row - zero_point);
    }
}

UACCEL_KERNEL void uaccel_mul_dsp_load_s16(const int16_t *row, uaccel_index step, int32_t zero_point, uint32_t *words)
{
    (void)zero_point;
    if (step != 0) {
        memcpy(&words[0], row, 4);
        memcpy(&words[1], row + 2, 4);
    } else {
        words[0] = words[1] = uaccel_mul_dsp_twice(*row);
    }
}

UACCEL_KERNEL void uaccel_mul_dsp_four_s8(const struct uaccel_mul_dsp *p, const uint32_t *x, const uint32_t *y,
                                          int8_t *output)
{
    output[0] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[0], y[0]), true);
    output[1] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[1], y[1]), true);
    output[2] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[0], y[0]), true);
    output[3] = (int8_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[1], y[1]), true);
}

UACCEL_KERNEL void uaccel_mul_dsp_four_s16(const struct uaccel_mul_dsp *p, const uint32_t *x, const uint32_t *y,
                                           int16_t *output)
{
    output[0] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[0], y[0]), false);
    output[1] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[0], y[0]), false);
    output[2] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_low(x[1], y[1]), false);
    output[3] = (int16_t)uaccel_mul_dsp_finish(p, uaccel_mul_dsp_high(x[1], y[1]), false);
}

/* An output may be an input of its size. */
#define UACCEL_MUL_DSP(type, element, bytes)                                                        \
    UACCEL_KERNEL void uaccel_mul_dsp_##type(const struct uaccel_mul_dsp *p, const element *input1, \
                                             const element *input2, element *output)                \
    {                                                                                               \
        const uaccel_index *s1 = p->strides1, *s2 = p->strides2;                                    \
        UACCEL_OUTER_LOOPS {                                                                        \
            const element *x = input1 + UACCEL_OUTER_AT(s1);                                        \
            const element *y = input2 + UACCEL_OUTER_AT(s2);                                        \
            uaccel_index left = p->extents[5];                                                      \
            for (; left >= 4; left -= 4) {                                                          \
                uint32_t first[2], second[2];                                                       \
                uaccel_mul_dsp_load_##type(x, s1[5], p->zero_point1, first);                        \
                uaccel_mul_dsp_load_##type(y, s2[5], p->zero_point2, second);                       \
                uaccel_mul_dsp_four_##type(p, first, second, output);                               \
                x += 4 * s1[5];                                                                     \
                y += 4 * s2[5];                                                                     \
                output += 4;                                                                        \
            }                                                                                       \
            for (; left > 0; --left) {                                                              \
                const int32_t product = (*x - p->zero_point1) * (*y - p->zero_point2);              \
                *output++ = (element)uaccel_mul_dsp_finish(p, product, bytes);                      \
                x += s1[5];                                                                         \
                y += s2[5];                                                                         \
            }                                                                                       \
        }                                                                                           \
    }

UACCEL_MUL_DSP(s8, int8_t, true)
UACCEL_MUL_DSP(s16, int16_t, false)
#undef UACCEL_MUL_DSP

#endif
