/* Elementwise operators of two inputs with broadcasting, portable C. */
#ifndef UACCEL_BINARY_H
#define UACCEL_BINARY_H

#include "uaccel_fixedpoint.h"
#include "uaccel_half_even.h"
#include "uaccel_reciprocal.h"

/* An element of either input less its zero point, and on a scale that both share. */
#define UACCEL_FIRST(p, value) ((value) - (p)->zero_point1)
#define UACCEL_SECOND(p, value) ((value) - (p)->zero_point2)
#define UACCEL_RAISED1(p, value) \
    uaccel_raised(UACCEL_FIRST(p, value), (p)->left_shift, (p)->multiplier1, (p)->shift1)
#define UACCEL_RAISED2(p, value) \
    uaccel_raised(UACCEL_SECOND(p, value), (p)->left_shift, (p)->multiplier2, (p)->shift2)

/* A kernel over a structure that holds the loops, outermost first; a stride of 0 repeats an input, and loops that run
 * once fold away. `first` and `second` prepare an element: int32_t (p, element); `combine` gives the output element, in
 * range: (p, int32_t, int32_t). */
#define UACCEL_BINARY_OF(name, structure, type1, type2, result, first, second, combine)                          \
    UACCEL_KERNEL void name(const struct structure *p, const type1 *input1, const type2 *input2, result *output) \
    {                                                                                                            \
        const uaccel_index *s1 = p->strides1, *s2 = p->strides2;                                                 \
        UACCEL_OUTER_LOOPS {                                                                                     \
            const type1 *row1 = input1 + UACCEL_OUTER_AT(s1);                                                    \
            const type2 *row2 = input2 + UACCEL_OUTER_AT(s2);                                                    \
            /* what is repeated along the row is prepared once */                                                \
            int32_t x = first(p, *row1);                                                                         \
            int32_t y = second(p, *row2);                                                                        \
            UACCEL_LOOP(i, 5) {                                                                                  \
                x = s1[5] != 0 ? first(p, row1[i]) : x;                                                          \
                y = s2[5] != 0 ? second(p, row2[i]) : y;                                                         \
                *output++ = (result)combine(p, x, y);                                                            \
            }                                                                                                    \
        }                                                                                                        \
    }

/* The kernels of int8 and of int16. */
#define UACCEL_BINARY(name, first, second, combine)                                   \
    UACCEL_BINARY_OF(name##_s8, name, int8_t, int8_t, int8_t, first, second, combine) \
    UACCEL_BINARY_OF(name##_s16, name, int16_t, int16_t, int16_t, first, second, combine)

/* Addition and subtraction of quantised tensors. */
struct uaccel_add {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t left_shift; /* extra bits of the common scale */
    int32_t zero_point1, multiplier1, shift1;
    int32_t zero_point2, multiplier2, shift2;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
    int32_t sign; /* 1: input1 + input2, -1: input1 - input2 */
};

/* One input on the common scale. That of the coarser input is twice its own, so its multiplier is one half. */
UACCEL_KERNEL int32_t uaccel_add_rescale(int32_t value, int32_t left_shift, int32_t multiplier, int32_t shift)
{
    if (multiplier == INT32_C(1) << 30 && shift == 0) {
        return uaccel_shift_left(value, left_shift - 1);
    }
    return uaccel_raised(value, left_shift, multiplier, shift);
}

UACCEL_KERNEL int32_t uaccel_add_combine(const struct uaccel_add *p, int32_t x, int32_t y)
{
    const int32_t sum = uaccel_requantise(uaccel_add_wrapping(x, y), p->output_multiplier, p->output_shift);
    return uaccel_finish(sum, p->output_zero_point, p->clamp_min, p->clamp_max);
}

#define UACCEL_ADD1(p, value) \
    uaccel_add_rescale(UACCEL_FIRST(p, value), (p)->left_shift, (p)->multiplier1, (p)->shift1)
#define UACCEL_ADD2(p, value) \
    ((p)->sign * uaccel_add_rescale(UACCEL_SECOND(p, value), (p)->left_shift, (p)->multiplier2, (p)->shift2))
UACCEL_BINARY(uaccel_add, UACCEL_ADD1, UACCEL_ADD2, uaccel_add_combine)

/* Addition and subtraction of quantised tensors, the real result rounded once. */
struct uaccel_weighted_sum {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, multiplier1;
    int32_t zero_point2, multiplier2; /* negative for a difference */
    int32_t shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_weighted_sum_combine(const struct uaccel_weighted_sum *p, int32_t x, int32_t y)
{
    const int64_t sum = (int64_t)x * p->multiplier1 + (int64_t)y * p->multiplier2; /* below 2^48 */
    const int64_t rounded = uaccel_round_half_even(sum, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 18);
}

UACCEL_BINARY(uaccel_weighted_sum, UACCEL_FIRST, UACCEL_SECOND, uaccel_weighted_sum_combine)

/* Multiplication of quantised tensors. */
struct uaccel_mul {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2, output_zero_point;
    int32_t multiplier, shift;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_mul_combine(const struct uaccel_mul *p, int32_t x, int32_t y)
{
    const int32_t product = uaccel_requantise(x * y, p->multiplier, p->shift);
    return uaccel_finish(product, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_BINARY(uaccel_mul, UACCEL_FIRST, UACCEL_SECOND, uaccel_mul_combine)

/* Multiplication of quantised tensors, the real result rounded once. */
struct uaccel_product {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2;
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

/* Whether a product fits 32 bits: with zero points of bytes even that of int16 elements does. */
UACCEL_KERNEL bool uaccel_product_is_short(const struct uaccel_product *p)
{
    return p->zero_point1 >= -128 && p->zero_point1 <= 127 && p->zero_point2 >= -128 && p->zero_point2 <= 127;
}

/* At most 33 bits, and 63 with the multiplier, which has 30. */
UACCEL_KERNEL int32_t uaccel_product_combine(const struct uaccel_product *p, int32_t x, int32_t y)
{
    const int64_t product = uaccel_product_is_short(p) ? x * y : (int64_t)x * y;
    const int64_t rounded = uaccel_round_half_even(product * p->multiplier, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 32);
}

UACCEL_BINARY(uaccel_product, UACCEL_FIRST, UACCEL_SECOND, uaccel_product_combine)

/* Division of quantised tensors. */
struct uaccel_div {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2;
    int32_t output_zero_point, multiplier, shift;
    int32_t clamp_min, clamp_max;
};

/* 1 / 0 is what Newton's steps give the reference. What takes a shift by more than 31 bits is zero. */
UACCEL_KERNEL int32_t uaccel_div_combine(const struct uaccel_div *p, int32_t x, int32_t y)
{
    const int32_t value = y < 0 ? -x : x, size = y < 0 ? -y : y;
    const int32_t zeros = uaccel_leading_zeros((uint32_t)size);
    const int32_t inverse = size != 0 ? uaccel_reciprocal((uint32_t)size << zeros) : -1515870788;
    const int32_t room = uaccel_leading_zeros((uint32_t)(value < 0 ? -value - 1 : value)) - 1;
    const int32_t quotient = uaccel_high_mul(uaccel_shift_left(value, room), inverse);
    const int32_t right = 31 - zeros + room - p->shift;
    const int32_t scaled = uaccel_high_mul(quotient, p->multiplier);
    const int32_t rounded = right > 31 ? 0 : uaccel_rounding_shift_right(scaled, right);
    return uaccel_finish(rounded, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_BINARY(uaccel_div, UACCEL_FIRST, UACCEL_SECOND, uaccel_div_combine)

/* The squared difference of quantised tensors. */
struct uaccel_squared_difference {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t left_shift; /* extra bits of the common scale */
    int32_t zero_point1, multiplier1, shift1;
    int32_t zero_point2, multiplier2, shift2;
    int32_t output_zero_point, output_multiplier, output_shift;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_squared_difference_combine(const struct uaccel_squared_difference *p, int32_t x,
                                                        int32_t y)
{
    const int32_t square = (int32_t)((uint32_t)(x - y) * (uint32_t)(x - y));
    const int32_t scaled = uaccel_requantise(square, p->output_multiplier, p->output_shift);
    return uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_BINARY(uaccel_squared_difference, UACCEL_RAISED1, UACCEL_RAISED2, uaccel_squared_difference_combine)

/* The smaller and the larger of two tensors' stored values. */
struct uaccel_minimum {
    uaccel_index extents[6], strides1[6], strides2[6];
};

struct uaccel_maximum {
    uaccel_index extents[6], strides1[6], strides2[6];
};

#define UACCEL_AS_STORED(p, value) (value)
#define UACCEL_SMALLER(p, x, y) ((x) < (y) ? (x) : (y))
#define UACCEL_LARGER(p, x, y) ((x) > (y) ? (x) : (y))

UACCEL_BINARY(uaccel_minimum, UACCEL_AS_STORED, UACCEL_AS_STORED, UACCEL_SMALLER)
UACCEL_BINARY(uaccel_maximum, UACCEL_AS_STORED, UACCEL_AS_STORED, UACCEL_LARGER)
#undef UACCEL_AS_STORED
#undef UACCEL_SMALLER
#undef UACCEL_LARGER

/* Comparisons of quantised tensors: both inputs become integers at one fine scale first. */
struct uaccel_compare {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t kind;       /* 0: ==, 1: !=, 2: >, 3: >=, 4: <, 5: <= */
    int32_t left_shift; /* bits after the point */
    int32_t zero_point1, multiplier1, shift1;
    int32_t zero_point2, multiplier2, shift2;
};

UACCEL_KERNEL int32_t uaccel_compare_combine(const struct uaccel_compare *p, int32_t x, int32_t y)
{
    switch (p->kind) {
    case 0: return x == y;
    case 1: return x != y;
    case 2: return x > y;
    case 3: return x >= y;
    case 4: return x < y;
    default: return x <= y;
    }
}

#define UACCEL_COMPARE(name, type) \
    UACCEL_BINARY_OF(name, uaccel_compare, type, type, uint8_t, UACCEL_RAISED1, UACCEL_RAISED2, uaccel_compare_combine)
UACCEL_COMPARE(uaccel_compare_s8, int8_t)
UACCEL_COMPARE(uaccel_compare_s16, int16_t)
#undef UACCEL_COMPARE

/* PRELU: the factor of negative values is a tensor of its own, int8 beside int8 and int16. */
struct uaccel_prelu {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t input_zero_point, alpha_zero_point, output_zero_point;
    int32_t positive_multiplier, positive_shift;
    int32_t negative_multiplier, negative_shift;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_prelu_combine(const struct uaccel_prelu *p, int32_t x, int32_t alpha)
{
    const int32_t scaled = x >= 0 ? uaccel_requantise(x, p->positive_multiplier, p->positive_shift)
                                  : uaccel_requantise(x * alpha, p->negative_multiplier, p->negative_shift);
    return uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
}

#define UACCEL_PRELU1(p, value) ((value) - (p)->input_zero_point)
#define UACCEL_PRELU2(p, value) ((value) - (p)->alpha_zero_point)
#define UACCEL_PRELU(name, type) \
    UACCEL_BINARY_OF(name, uaccel_prelu, type, int8_t, type, UACCEL_PRELU1, UACCEL_PRELU2, uaccel_prelu_combine)
UACCEL_PRELU(uaccel_prelu_s8, int8_t)
UACCEL_PRELU(uaccel_prelu_s16, int16_t)
#undef UACCEL_PRELU

/* PReLU with a tensor of slopes, the real result rounded once. */
struct uaccel_prelu_once {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point;
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

/* At most 47 bits. */
UACCEL_KERNEL int32_t uaccel_prelu_once_combine(const struct uaccel_prelu_once *p, int32_t x, int32_t slope)
{
    const int64_t product = (int64_t)x * (x >= 0 ? p->multiplier : slope);
    const int64_t rounded = uaccel_round_half_even(product, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 18);
}

#define UACCEL_ONCE1(p, value) ((value) - (p)->zero_point)
#define UACCEL_ONCE2(p, value) (value) /* a slope as it is */
#define UACCEL_PRELU(name, type)                                                                \
    UACCEL_BINARY_OF(name, uaccel_prelu_once, type, int32_t, type, UACCEL_ONCE1, UACCEL_ONCE2, \
                     uaccel_prelu_once_combine)
UACCEL_PRELU(uaccel_prelu_once_s8, int8_t)
UACCEL_PRELU(uaccel_prelu_once_s16, int16_t)
#undef UACCEL_PRELU

/* Product of a function of one 8-bit tensor and a function of another, rounded once. */
struct uaccel_function_product {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t entries1, words2;
    int32_t shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

/* The first factor: a table of one entry is a zero point. */
UACCEL_KERNEL int64_t uaccel_function_product_first(const struct uaccel_function_product *p, const int32_t *table,
                                                    int8_t value)
{
    return p->entries1 == 1 ? (int64_t)(value - table[0]) : (int64_t)table[(uint8_t)value];
}

/* The second factor: its table may have a high word for each entry, behind all low ones. */
UACCEL_KERNEL int64_t uaccel_function_product_second(const struct uaccel_function_product *p, const int32_t *table,
                                                     int8_t value)
{
    const int32_t low = table[(uint8_t)value];
    return p->words2 == 1 ? low : table[256 + (uint8_t)value] * (INT64_C(1) << 32) + low;
}

UACCEL_KERNEL int8_t uaccel_function_product_combine(const struct uaccel_function_product *p, int64_t product)
{
    const int64_t rounded = uaccel_round_half_even(product, p->shift, p->tolerance);
    return (int8_t)uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, false);
}

/* Both tables are indexed by the bits of an element. A stride of 0 repeats an input. */
UACCEL_KERNEL void uaccel_function_product_s8(const struct uaccel_function_product *p, const int8_t *input1,
                                              const int8_t *input2, const int32_t *table1, const int32_t *table2,
                                              int8_t *output)
{
    const uaccel_index *s1 = p->strides1, *s2 = p->strides2;
    UACCEL_OUTER_LOOPS {
        const int8_t *row1 = input1 + UACCEL_OUTER_AT(s1);
        const int8_t *row2 = input2 + UACCEL_OUTER_AT(s2);
        int64_t x = uaccel_function_product_first(p, table1, *row1);
        int64_t y = uaccel_function_product_second(p, table2, *row2);
        UACCEL_LOOP(i, 5) {
            x = s1[5] != 0 ? uaccel_function_product_first(p, table1, row1[i]) : x;
            y = s2[5] != 0 ? uaccel_function_product_second(p, table2, row2[i]) : y;
            *output++ = uaccel_function_product_combine(p, x * y);
        }
    }
}

#endif
