/* Matrix products for any CPU: columns are widened to 16 bits, less their zero point. */
#ifndef UACCEL_BATCH_MATMUL_DOTS_BLOCKED_H
#define UACCEL_BATCH_MATMUL_DOTS_BLOCKED_H

#include "uaccel_batch_matmul.h"
#include "uaccel_eight_blocked.h"

/* For each element of a row those of eight columns. */
UACCEL_KERNEL void uaccel_batch_matmul_pack_dots_blocked(const struct uaccel_batch_matmul *p, const int8_t *columns,
                                                         uaccel_index count, uaccel_index bytes, void *packed)
{
    int16_t *halves = packed;
    if (count < 8 || bytes > 16 * p->depth) {
        memset(packed, 0, (size_t)bytes);
    }
    for (uaccel_index k = 0; k < p->depth; ++k) {
        const int8_t *const from = columns + k * p->rhs_depth_step;
        for (uaccel_index c = 0; c < count; ++c) {
            halves[c] = (int16_t)(from[c * p->rhs_column_step] - p->rhs_zero_point);
        }
        halves += 8;
    }
}

#define UACCEL_HALF(number) halves[number]

/* A row, of which input..end are bytes, times eight packed columns. */
UACCEL_SHARED void uaccel_batch_matmul_eight_dots_blocked(const int8_t *input, const int8_t *end, const void *columns,
                                                          int32_t *sums)
{
    const int16_t *halves = columns;
    int32_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (; input != end; ++input) {
        const int32_t x = *input;
        UACCEL_EIGHT_PRODUCTS(x, UACCEL_HALF);
        halves += 8;
    }
    UACCEL_EIGHT_STORE(sums);
}

#undef UACCEL_HALF

#define UACCEL_DOTS(name) name##_dots_blocked
#define UACCEL_DOTS_BYTE(value) uaccel_clamp(value, INT8_MIN, INT8_MAX)
#include "uaccel_batch_matmul_dots_scalar_body.h"

#endif
