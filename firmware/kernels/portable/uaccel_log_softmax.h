/* Logarithm of softmax of 8-bit elements along the last axis, portable C. */
#ifndef UACCEL_LOG_SOFTMAX_H
#define UACCEL_LOG_SOFTMAX_H

#include "uaccel_softmax.h"

struct uaccel_log_softmax {
    uaccel_index rows, depth;
    int32_t entries;           /* of the table; the exponential of a larger distance is zero */
    int32_t radius;            /* larger distances are 16 and more: their output is the lowest */
    int32_t multiplier, shift; /* from distances to 5 integer and 26 fraction bits */
};

/* x = r * 2^z with r, 31 bits after the point, near 2^-0.25; z has 25 bits after the point. */
struct uaccel_log_split {
    int32_t r, z;
};

/* Of the two ways to split x that are a factor 2^0.5 apart, the one that is nearer. x has 19 bits after the point. */
UACCEL_KERNEL struct uaccel_log_split uaccel_log_split(int32_t x)
{
    const int32_t root_half = 1518500250; /* 2^-0.5, 31 bits after the point */
    const int32_t quarter = INT32_C(1) << 23;
    const int32_t zeros = uaccel_leading_zeros((uint32_t)x);
    const int32_t root_zeros = uaccel_leading_zeros((uint32_t)uaccel_high_mul(x, root_half));
    const int32_t down = uaccel_shift_left_saturating(uaccel_high_mul(x << (zeros - 1), root_half), 1);
    const int32_t up = uaccel_shift_left_saturating(x, root_zeros - 1);
    const int32_t z_down = uaccel_shift_left(12 - zeros, 25) + quarter;
    const int32_t z_up = uaccel_shift_left(13 - root_zeros, 25) - quarter;
    struct uaccel_log_split split;
    split.r = down < up ? down : up;
    split.z = z_down > z_up ? z_down : z_up;
    return split;
}

/* ln(x), 26 bits after the point, for x of 1 and more, 19 bits after the point: ln(r) is a fraction of two
 * polynomials in r - 2^-0.25. Constants have 31 bits after the point. */
UACCEL_KERNEL int32_t uaccel_log(int32_t x)
{
    const int32_t centre = 1805811301, ln_2 = 1488522236;
    const struct uaccel_log_split split = uaccel_log_split(x);
    const int32_t q = (split.r - centre) * 2;
    const int32_t square = uaccel_high_mul(q, q);
    const int32_t numerator =
        uaccel_high_mul(q, split.r) + uaccel_high_mul(uaccel_high_mul(q, square), 117049297);
    const int32_t middle = (int32_t)(((uint32_t)split.r + (uint32_t)centre + 1u) >> 1);
    const int32_t denominator = uaccel_high_mul(middle, 1057819769 + q + uaccel_high_mul(127690142, square)) +
                                uaccel_high_mul(638450708, q); /* less 1 */
    const int32_t inverse = uaccel_reciprocal((uint32_t)denominator + (UINT32_C(1) << 31));
    const int32_t fraction = uaccel_high_mul(uaccel_rounding_shift_right(numerator, 6), inverse);
    return uaccel_shift_left_saturating(uaccel_high_mul(split.z, ln_2) + fraction, 1);
}

/* The output may overwrite the input: a row is read twice before its first element is written. */
UACCEL_KERNEL void uaccel_log_softmax_s8(const struct uaccel_log_softmax *p, const int8_t *input,
                                         const int32_t *table, int8_t *output)
{
    const struct uaccel_softmax softmax = {p->rows, p->depth, p->entries};
    for (uaccel_index r = 0; r < p->rows; ++r) {
        const int32_t largest = uaccel_softmax_largest(&softmax, input);
        const int32_t logarithm = uaccel_log((int32_t)uaccel_softmax_sum(&softmax, input, largest, table));
        for (uaccel_index i = 0; i < p->depth; ++i) {
            const int32_t distance = largest - input[i];
            if (distance > p->radius) {
                output[i] = INT8_MIN;
                continue;
            }
            const int32_t scaled = uaccel_requantise(-distance, p->multiplier, p->shift);
            const int32_t value = uaccel_rounding_shift_right(scaled - logarithm, 22) + 127;
            output[i] = (int8_t)uaccel_clamp(value, INT8_MIN, INT8_MAX);
        }
        input += p->depth;
        output += p->depth;
    }
}

#endif
