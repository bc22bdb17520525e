/* Softmax of 16-bit elements along the last axis, portable C: two interpolated tables of 513 points, for the
 * exponential on [-10, 0] and for 1 / (1 + x) on [0, 1]. */
#ifndef UACCEL_SOFTMAX16_H
#define UACCEL_SOFTMAX16_H

#include "uaccel_interpolate.h"
#include "uaccel_reciprocal.h"

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

#endif
