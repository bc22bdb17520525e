/* Rows divided by their Euclidean length, 8-bit elements, portable C. */
#ifndef UACCEL_L2_NORMALIZE_H
#define UACCEL_L2_NORMALIZE_H

#include "uaccel_reciprocal.h"

struct uaccel_l2_normalize {
    uaccel_index rows, depth;
    int32_t input_zero_point;
};

struct uaccel_inverse_root {
    int32_t multiplier, shift; /* x^-0.5 = multiplier * 2^(shift - 31) */
};

/* x * (1.5 - half * x^2), 28 bits after the point. */
UACCEL_KERNEL int32_t uaccel_inverse_root_step(int32_t x, int32_t half)
{
    const int32_t three_halves = (INT32_C(1) << 28) + (INT32_C(1) << 27);
    const int32_t cube = uaccel_shift_left_saturating(uaccel_high_mul(uaccel_high_mul(x, x), x), 6);
    return uaccel_shift_left_saturating(uaccel_high_mul(three_halves, x) - uaccel_high_mul(half, cube), 3);
}

/* Of a sum of squares. It is first brought to 2^27..2^29 by an even number of bits; then five steps of Newton's
 * method, whose last bits are the reference's. 0 counts as 1. */
UACCEL_KERNEL struct uaccel_inverse_root uaccel_inverse_root(int32_t squares)
{
    struct uaccel_inverse_root root = {INT32_MAX, 0};
    if (squares <= 1) {
        return root;
    }
    const bool large = squares >= INT32_C(1) << 29;
    const int32_t pairs = large ? -1 : (uaccel_leading_zeros((uint32_t)squares) - 1) / 2 - 1;
    const int32_t normal = large ? squares >> 2 : squares << (2 * pairs);
    const int32_t half = uaccel_rounding_shift_right(normal >> 1, 1);
    int32_t x = INT32_C(1) << 28;
    for (int step = 0; step < 5; ++step) {
        x = uaccel_inverse_root_step(x, half);
    }
    const int32_t scaled = uaccel_high_mul(x, 1518500250); /* 2^-0.5 */
    root.multiplier = pairs > 11 ? uaccel_shift_left(scaled, pairs - 11) : scaled;
    root.shift = pairs > 11 ? 0 : pairs - 11;
    return root;
}

/* The output may overwrite the input: a row is read whole before its first element is written. */
UACCEL_KERNEL void uaccel_l2_normalize_s8(const struct uaccel_l2_normalize *p, const int8_t *input, int8_t *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        int32_t squares = 0;
        for (uaccel_index i = 0; i < p->depth; ++i) {
            const int32_t value = input[i] - p->input_zero_point;
            squares += value * value;
        }
        const struct uaccel_inverse_root root = uaccel_inverse_root(squares);
        for (uaccel_index i = 0; i < p->depth; ++i) {
            const int32_t value = input[i] - p->input_zero_point;
            const int32_t scaled = uaccel_requantise(value, root.multiplier, root.shift + 7);
            output[i] = (int8_t)uaccel_clamp(scaled, INT8_MIN, INT8_MAX);
        }
        input += p->depth;
        output += p->depth;
    }
}

#endif
