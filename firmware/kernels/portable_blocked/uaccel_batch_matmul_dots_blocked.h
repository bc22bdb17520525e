/* Matrix products for any CPU: columns are widened to 16 bits, less their zero point. */
#ifndef UACCEL_BATCH_MATMUL_DOTS_BLOCKED_H
#define UACCEL_BATCH_MATMUL_DOTS_BLOCKED_H

#include "uaccel_batch_matmul.h"

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

/* A row, of which input..end are bytes, times eight packed columns. */
UACCEL_SHARED void uaccel_batch_matmul_eight_dots_blocked(const int8_t *input, const int8_t *end, const void *columns,
                                                          int32_t *sums)
{
    const int16_t *halves = columns;
    int32_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (; input != end; ++input) {
        const int32_t x = *input;
        a += x * halves[0];
        b += x * halves[1];
        c += x * halves[2];
        d += x * halves[3];
        e += x * halves[4];
        f += x * halves[5];
        g += x * halves[6];
        h += x * halves[7];
        halves += 8;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
    sums[4] = e;
    sums[5] = f;
    sums[6] = g;
    sums[7] = h;
}

#define UACCEL_DOTS(name) name##_dots_blocked
#define UACCEL_DOTS_BYTE(value) uaccel_clamp(value, INT8_MIN, INT8_MAX)
#include "uaccel_batch_matmul_dots_scalar_body.h"

#endif
