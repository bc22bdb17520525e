/* Normalisation of rows, and the inverse square root, portable C. */
#ifndef UACCEL_NORMALIZE_H
#define UACCEL_NORMALIZE_H

#include "uaccel_half_even.h"
#include "uaccel_reciprocal.h"

/* Rows divided by their Euclidean length, 8-bit elements. */
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

/* 1 / sqrt(x) of 16-bit elements. */
struct uaccel_rsqrt {
    uaccel_index elements;
    int32_t multiplier, shift;
};

/* The output may overwrite the input. */
UACCEL_KERNEL void uaccel_rsqrt_s16(const struct uaccel_rsqrt *p, const int16_t *input, int16_t *output)
{
    for (uaccel_index i = 0; i < p->elements; ++i) {
        int32_t value = INT16_MAX;
        if (input[i] > 0) {
            const struct uaccel_inverse_root root = uaccel_inverse_root(input[i]);
            const int32_t fine = uaccel_requantise(1, root.multiplier, root.shift + 20);
            value = uaccel_clamp(uaccel_requantise(fine, p->multiplier, p->shift - 20), INT16_MIN, INT16_MAX);
        }
        output[i] = (int16_t)value;
    }
}

/* Layer, group and instance normalisation of rows, the real result rounded once.
 *
 * A row's sum and its sum of squares are exact, and so are distances from the mean and the variance, both times the
 * number of elements. One inverse square root a row, by Newton's method. */

struct uaccel_layer_norm {
    uaccel_index rows, depth;
    int64_t epsilon;  /* beside depth^2 times the variance, with as many bits after the point */
    int32_t fraction; /* those bits */
    int32_t right;    /* brings a distance times an inverse root to the point of gamma's factor */
    int32_t shift;    /* bits after the point of the result */
    int32_t beta_shift;
    int32_t output_zero_point, clamp_min, clamp_max;
    uaccel_index groups; /* rows after which gamma and beta begin anew */
    uaccel_index inner;  /* elements side by side with one of each */
};

struct uaccel_layer_norm_row {
    int32_t sum;
    int64_t root; /* 1 / sqrt(variance) from 1 to 2, 30 bits after the point */
    int32_t right;
};

/* 1 / sqrt(w / 2^31) for w from a quarter to one, from a straight line by five steps of Newton's method. */
UACCEL_KERNEL int64_t uaccel_layer_norm_root(int64_t w)
{
    int64_t x = INT64_C(0x95555555) - ((w * 1431655765) >> 31); /* 7/3 - 4/3 w */
    for (int step = 0; step < 5; ++step) {
        const int64_t square = (x * x) >> 30;
        x = (x * ((INT64_C(3) << 30) - ((w * square) >> 31))) >> 31;
    }
    return x;
}

#define UACCEL_BODY "uaccel_layer_norm_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
