/* Sums of products for any CPU, up to eight rows of weights at a time: what SVDF, LSTM and others begin with. */
#ifndef UACCEL_DOTS_BLOCKED_H
#define UACCEL_DOTS_BLOCKED_H

#include "uaccel_dots.h"
#include "uaccel_eight_blocked.h"

#define UACCEL_DOTS(name) name##_dots_blocked
#include "uaccel_dots_scalar_body.h"
#undef UACCEL_DOTS

#define UACCEL_BYTE(number) weights[number]

/* input..end: bytes. weights: for each of them those of eight rows. sums: what they are added to. */
UACCEL_SHARED void uaccel_eight_dots_blocked(const int8_t *input, const int8_t *end, const int8_t *weights,
                                             int32_t *sums)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3], e = sums[4], f = sums[5], g = sums[6], h = sums[7];
    for (; input != end; ++input) {
        const int32_t x = *input;
        UACCEL_EIGHT_PRODUCTS(x, UACCEL_BYTE);
        weights += 8;
    }
    UACCEL_EIGHT_STORE(sums);
}

#undef UACCEL_BYTE

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
        memset(sums, 0, 8 * sizeof *sums);
        uaccel_eight_dots_blocked(input, input + filled, bytes, sums);
    } else {
        *sums = uaccel_row_s8_dots_blocked(input, bytes, filled, 0);
    }
}

#endif
