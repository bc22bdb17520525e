/* Sums of products for any CPU, up to eight rows of weights at a time: what SVDF, LSTM and others begin with. */
#ifndef UACCEL_DOTS_BLOCKED_H
#define UACCEL_DOTS_BLOCKED_H

#include "uaccel_blocked.h"
#include "uaccel_dots.h"

#define UACCEL_DOTS(name) name##_dots_blocked
#include "uaccel_dots_scalar_body.h"
#undef UACCEL_DOTS

/* The products of bytes with eight rows of weights. */
UACCEL_SHARED void uaccel_eight_dots_blocked(const int8_t *input, uaccel_index filled, const int8_t *weights,
                                             int32_t *sums)
{
    uaccel_sums_8_s8(input, filled, weights, sums);
}

UACCEL_KERNEL int32_t uaccel_row_s8_dots_blocked(const int8_t *a, const int8_t *b, uaccel_index count, int32_t sum)
{
    uint32_t total = (uint32_t)sum;
    for (; count >= 4; count -= 4) {
        total += (uint32_t)(a[0] * b[0]) + (uint32_t)(a[1] * b[1]);
        total += (uint32_t)(a[2] * b[2]) + (uint32_t)(a[3] * b[3]);
        a += 4;
        b += 4;
    }
    for (; count > 0; --count) {
        total += (uint32_t)(*a++ * *b++);
    }
    return (int32_t)total;
}

UACCEL_KERNEL int32_t uaccel_row_s16_dots_blocked(const int16_t *a, const int16_t *b, uaccel_index count, int32_t sum)
{
    uint32_t total = (uint32_t)sum;
    for (; count >= 2; count -= 2) {
        total += (uint32_t)((int32_t)a[0] * b[0]) + (uint32_t)((int32_t)a[1] * b[1]);
        a += 2;
        b += 2;
    }
    return (int32_t)(count > 0 ? total + (uint32_t)((int32_t)*a * *b) : total);
}

/* Words of the weights of up to eight rows. */
UACCEL_KERNEL uaccel_index uaccel_words_dots_blocked(uaccel_index filled, uaccel_index rows)
{
    return rows > 1 ? filled * 2 : (filled + 3) / 4;
}

/* Two rows or more as eight, and one by itself. */
UACCEL_KERNEL void uaccel_rows_dots_blocked(const int8_t *input, uaccel_index filled, const int32_t *weights,
                                            uaccel_index rows, int32_t *sums)
{
    const int8_t *const bytes = (const int8_t *)weights;
    if (rows > 1) {
        uaccel_eight_dots_blocked(input, filled, bytes, sums);
    } else {
        *sums = uaccel_row_s8_dots_blocked(input, bytes, filled, 0);
    }
}

#endif
