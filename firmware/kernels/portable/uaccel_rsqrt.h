/* 1 / sqrt(x) of 16-bit elements, portable C. */
#ifndef UACCEL_RSQRT_H
#define UACCEL_RSQRT_H

#include "uaccel_l2_normalize.h"

struct uaccel_rsqrt {
    uaccel_index elements;
    int32_t multiplier, shift;
};

/* The output may overwrite the input. */
UACCEL_KERNEL void uaccel_rsqrt_s16(const struct uaccel_rsqrt *p, const int16_t *input, int16_t *output)
{
    for (uaccel_index i = 0; i < p->elements; ++i) {
        int32_t value = INT16_MAX;
        if (input[i] > 0) {
            const struct uaccel_inverse_root root = uaccel_inverse_root(input[i]);
            const int32_t fine = uaccel_requantise(1, root.multiplier, root.shift + 20);
            value = uaccel_clamp(uaccel_requantise(fine, p->multiplier, p->shift - 20), INT16_MIN, INT16_MAX);
        }
        output[i] = (int16_t)value;
    }
}

#endif
