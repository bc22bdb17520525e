/* Sums of rows times transposed weights, four units at a time, portable C. */
#ifndef UACCEL_FULLY_CONNECTED_SUMS_H
#define UACCEL_FULLY_CONNECTED_SUMS_H

#include "uaccel_kernel.h"

struct uaccel_fully_connected_sums {
    uaccel_index rows, depth, units;
};

/* weights: [units, depth]. Where fewer than four units are left, the last one is summed again. */
UACCEL_KERNEL void uaccel_fully_connected_sums(const struct uaccel_fully_connected_sums *p, const int8_t *input,
                                               const int8_t *weights, int32_t *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        for (uaccel_index u = 0; u < p->units; u += 4) {
            const uaccel_index left = p->units - u;
            const int8_t *const a = weights + u * p->depth;
            const int8_t *const b = left > 1 ? a + p->depth : a;
            const int8_t *const c = left > 2 ? b + p->depth : b;
            const int8_t *const d = left > 3 ? c + p->depth : c;
            uint32_t sums[4] = {0, 0, 0, 0}; /* they wrap */
            for (uaccel_index i = 0; i < p->depth; ++i) {
                const int32_t x = input[i];
                sums[0] += (uint32_t)(x * a[i]);
                sums[1] += (uint32_t)(x * b[i]);
                sums[2] += (uint32_t)(x * c[i]);
                sums[3] += (uint32_t)(x * d[i]);
            }
            for (uaccel_index i = 0; i < 4 && i < left; ++i) {
                *output++ = (int32_t)sums[i];
            }
        }
        input += p->depth;
    }
}

#endif
