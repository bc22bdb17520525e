/* Layers whose weights have four bits, two of them in a byte, the first in its low half: int8 activations, portable C.
 *
 * Each row of weights begins with a byte of its own. The bias already holds -input_zero_point * sum(weights). */
#ifndef UACCEL_INT4_H
#define UACCEL_INT4_H

#include "uaccel_weights.h"

/* The weight of the low and of the high half. */
UACCEL_KERNEL int32_t uaccel_int4_low(uint32_t byte)
{
    return (int32_t)(byte << 28) >> 28;
}

UACCEL_KERNEL int32_t uaccel_int4_high(uint32_t byte)
{
    return (int32_t)(byte << 24) >> 28;
}

/* acc and the products of `count` inputs with the weights of a row. */
UACCEL_KERNEL int32_t uaccel_int4_products(int32_t acc, const int8_t *input, const uint8_t *row, uaccel_index count)
{
    for (uaccel_index i = 0; i + 1 < count; i += 2) {
        const uint32_t byte = row[i / 2];
        acc = uaccel_add_wrapping(acc, input[i] * uaccel_int4_low(byte));
        acc = uaccel_add_wrapping(acc, input[i + 1] * uaccel_int4_high(byte));
    }
    return count % 2 != 0 ? uaccel_add_wrapping(acc, input[count - 1] * uaccel_int4_low(row[count / 2])) : acc;
}

#undef UACCEL_STORED
#undef UACCEL_ROW
#undef UACCEL_FROM
#undef UACCEL_HERE
#undef UACCEL_PRODUCTS
#define UACCEL_STORED uint8_t
#define UACCEL_ROW(weights, number, size) ((weights) + (number) * (((size) + 1) / 2))
#define UACCEL_FROM(row, number) ((row) + (number) / 2)
#define UACCEL_HERE(place, number) ((number) % 2 != 0 ? uaccel_int4_high(*(place)) : uaccel_int4_low(*(place)))
#define UACCEL_PRODUCTS uaccel_int4_products

#define UACCEL_BODY "uaccel_int4_body.h"
#include "uaccel_roundings.h"

#endif
