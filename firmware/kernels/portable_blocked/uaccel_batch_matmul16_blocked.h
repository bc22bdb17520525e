/* Matrix products of int16 for any CPU: sums of 64 bits without additions of 64 bits. */
#ifndef UACCEL_BATCH_MATMUL16_BLOCKED_H
#define UACCEL_BATCH_MATMUL16_BLOCKED_H

#include "uaccel_batch_matmul16.h"

/* For each element of a row those of four columns. */
UACCEL_KERNEL void uaccel_batch_matmul16_pack_blocked(const struct uaccel_batch_matmul16 *p, const int16_t *columns,
                                                      uaccel_index count, int16_t *packed)
{
    uaccel_batch_matmul16_spread(p, columns, count, 1, packed);
}

/* `low`: a sum's low 32 bits; `high`: the sum of its terms without their low halves. Those low halves add up to less
 * than 2^32, since there are at most 2^16 of them. */
UACCEL_KERNEL int64_t uaccel_batch_matmul16_whole_blocked(uint32_t low, int32_t high)
{
    return (int64_t)high * 65536 + (int64_t)(uint32_t)(low - ((uint32_t)high << 16));
}

/* A row, of which input..end are the elements, times four packed columns. */
UACCEL_SHARED void uaccel_batch_matmul16_four_blocked(const int16_t *input, const int16_t *end, const int16_t *columns,
                                                      int64_t *sums)
{
    uint32_t a = 0, b = 0, c = 0, d = 0;
    int32_t e = 0, f = 0, g = 0, h = 0;
    for (; input != end; ++input) {
        const int32_t x = *input;
        const int32_t i = x * columns[0], j = x * columns[1], k = x * columns[2], l = x * columns[3];
        a += (uint32_t)i;
        b += (uint32_t)j;
        c += (uint32_t)k;
        d += (uint32_t)l;
        e += i >> 16;
        f += j >> 16;
        g += k >> 16;
        h += l >> 16;
        columns += 4;
    }
    sums[0] = uaccel_batch_matmul16_whole_blocked(a, e);
    sums[1] = uaccel_batch_matmul16_whole_blocked(b, f);
    sums[2] = uaccel_batch_matmul16_whole_blocked(c, g);
    sums[3] = uaccel_batch_matmul16_whole_blocked(d, h);
}

#define UACCEL_MATMUL16(name) name##_blocked
#include "uaccel_batch_matmul16_body.h"

#endif
