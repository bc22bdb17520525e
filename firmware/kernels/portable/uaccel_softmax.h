/* Softmax along the last axis and its logarithm, portable C. */
#ifndef UACCEL_SOFTMAX_H
#define UACCEL_SOFTMAX_H

#include "uaccel_half_even.h"
#include "uaccel_reciprocal.h"

/* Softmax of 8-bit elements along the last axis.
 *
 * There are only 256 distances to the largest element of a row, so their exponentials come from a table made ahead
 * of time; every output byte is what the reference's fixed-point exponential gives. */

struct uaccel_softmax {
    uaccel_index rows, depth;
    int32_t entries; /* of the table; the exponential of a larger distance is zero */
};

/* exp(-distance), 31 bits after the point. */
UACCEL_KERNEL int32_t uaccel_softmax_exp(const struct uaccel_softmax *p, const int32_t *table, int32_t distance)
{
    return distance < p->entries ? table[distance] : 0;
}

/* The largest element of a row. */
UACCEL_KERNEL int32_t uaccel_softmax_largest(const struct uaccel_softmax *p, const int8_t *row)
{
    int32_t largest = row[0];
    for (uaccel_index i = 1; i < p->depth; ++i) {
        largest = row[i] > largest ? row[i] : largest;
    }
    return largest;
}

/* The sum of a row's exponentials, 19 bits after the point. */
UACCEL_KERNEL uint32_t uaccel_softmax_sum(const struct uaccel_softmax *p, const int8_t *row, int32_t largest,
                                          const int32_t *table)
{
    uint32_t sum = 0;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        sum += (uint32_t)uaccel_rounding_shift_right(uaccel_softmax_exp(p, table, largest - row[i]), 12);
    }
    return sum;
}

#define UACCEL_BODY "uaccel_softmax_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

/* Logarithm of softmax of 8-bit elements along the last axis. */
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

/* A table of 513 points over the range of 16 bits, with straight lines between them: the upper 9 bits of the value
 * choose the segment, the lower 7 the place in it. */
UACCEL_KERNEL int32_t uaccel_interpolate(const int16_t *table, int32_t value)
{
    const int16_t *segment = table + 256 + (value >> 7);
    const int32_t slope = (int32_t)segment[1] - segment[0];
    return segment[0] + ((slope * (value & 127) + 64) >> 7);
}

/* Softmax of 16-bit elements along the last axis: two interpolated tables of 513 points, for the
 * exponential on [-10, 0] and for 1 / (1 + x) on [0, 1]. */

struct uaccel_softmax16 {
    uaccel_index rows, depth;
    int32_t multiplier, shift; /* from input differences to steps of the exponential's table */
};

/* Writes a row's exponentials, 15 bits after the point, and returns their sum. */
UACCEL_KERNEL uint32_t uaccel_softmax16_exp(const struct uaccel_softmax16 *p, const int16_t *row,
                                            const int16_t *exponential, int16_t *output)
{
    int32_t largest = row[0];
    for (uaccel_index i = 1; i < p->depth; ++i) {
        largest = row[i] > largest ? row[i] : largest;
    }
    int32_t sum = 0;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        const int32_t scaled = uaccel_requantise(row[i] - largest, p->multiplier, p->shift);
        const int32_t centred = uaccel_clamp(scaled + 32767, -32768, 32767);
        output[i] = (int16_t)uaccel_interpolate(exponential, centred);
        sum += output[i];
    }
    return (uint32_t)sum;
}

/* 1 / sum of a sum with that many leading zeros, 15 bits after the point once the sum is scaled to 1..2. */
UACCEL_KERNEL int32_t uaccel_softmax16_reciprocal(uint32_t sum, int32_t headroom, const int16_t *reciprocal)
{
    const uint32_t one_to_two = ((sum << (headroom - 1)) + (UINT32_C(1) << 13)) >> 14;
    const int32_t centred = uaccel_clamp((int32_t)one_to_two - (INT32_C(1) << 15) - (INT32_C(1) << 16), -32768, 32767);
    return uaccel_interpolate(reciprocal, centred);
}

/* The output may overwrite the input. */
UACCEL_KERNEL void uaccel_softmax_s16(const struct uaccel_softmax16 *p, const int16_t *input,
                                      const int16_t *exponential, const int16_t *reciprocal, int16_t *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        const uint32_t sum = uaccel_softmax16_exp(p, input, exponential, output);
        const int32_t headroom = uaccel_leading_zeros(sum);
        const int32_t scale = uaccel_softmax16_reciprocal(sum, headroom, reciprocal);
        const int32_t shift = 31 - headroom;
        const int32_t half = INT32_C(1) << (shift - 1);
        for (uaccel_index i = 0; i < p->depth; ++i) {
            output[i] = (int16_t)uaccel_clamp((output[i] * scale + half) >> shift, 0, 32767);
        }
        input += p->depth;
        output += p->depth;
    }
}

/* Softmax along the last axis, the real result rounded once.
 *
 * Of 8 bits there are only 256 distances to the largest element of a row, so their exponentials come from a table made
 * ahead of time; of 16 bits from two. A row takes one division. */

struct uaccel_softmax_once {
    uaccel_index rows, depth;
    int32_t entries; /* of the table; the exponential of a larger distance is zero */
    int32_t inverse; /* 1 / output scale, 31 bits */
    int32_t shift;   /* of an exponential times a reciprocal */
    int32_t output_zero_point;
};

/* A row's largest element, its scaled reciprocal and how far down the products of that have to be shifted. */
struct uaccel_softmax_once_row {
    int32_t largest;
    int64_t reciprocal;
    int32_t shift;
};

/* exp(-distance), 30 bits after the point. */
UACCEL_KERNEL int32_t uaccel_softmax_once_exp(const struct uaccel_softmax_once *p, const int32_t *table,
                                              int32_t distance)
{
    return distance < p->entries ? table[distance] : 0;
}

/* The same for distances of 16 bits: the exponential of 256 times the upper half, and that of the lower half. */
UACCEL_KERNEL int32_t uaccel_softmax_once_exp16(const struct uaccel_softmax_once *p, const int32_t *table,
                                                int32_t distance)
{
    const int64_t product = (int64_t)table[distance >> 8] * table[p->entries / 2 + (distance & 255)];
    return (int32_t)((product + (INT64_C(1) << 29)) >> 30);
}

#define UACCEL_GIVEN int8_t
#define UACCEL_GIVEN_FN(name) UACCEL_FN(name##_s8)
#define UACCEL_GIVEN_EXP uaccel_softmax_once_exp
#define UACCEL_BODY "uaccel_softmax_once_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"
#undef UACCEL_GIVEN
#undef UACCEL_GIVEN_FN
#undef UACCEL_GIVEN_EXP

#define UACCEL_GIVEN int16_t
#define UACCEL_GIVEN_FN(name) UACCEL_FN(name##_s16)
#define UACCEL_GIVEN_EXP uaccel_softmax_once_exp16
#define UACCEL_BODY "uaccel_softmax_once_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"
#undef UACCEL_GIVEN
#undef UACCEL_GIVEN_FN
#undef UACCEL_GIVEN_EXP

#endif
