/* What the kernels for any CPU share that compute several sums at once: each load serves more than one product.
 *
 * Of each output channel there are four constants: {sum at the start, multiplier, offset, shift}. The offset is the
 * rounding's half and the zero point, both times 2^shift. */
#ifndef UACCEL_BLOCKED_H
#define UACCEL_BLOCKED_H

#include "uaccel_kernel.h"

struct uaccel_blocked_finish {
    int32_t sign; /* 1: a negative tie is rounded down; 0: it ends below clamp_min, either way */
    int32_t clamp_min, clamp_max;
};

/* round(2 * sum * multiplier / 2^32), halves upwards; the compiler of models has made sure that 2 * sum fits. */
UACCEL_KERNEL int32_t uaccel_blocked_high(int32_t sum, int32_t multiplier)
{
    const int64_t product = (int64_t)(sum * 2) * multiplier;
    return (int32_t)(product >> 32) + (int32_t)((uint32_t)product >> 31);
}

UACCEL_KERNEL int8_t uaccel_blocked_round(const struct uaccel_blocked_finish *p, int32_t sum, const int32_t *constants)
{
    int32_t high = uaccel_blocked_high(sum, constants[1]);
    if (p->sign) {
        high += high >> 31;
    }
    const int32_t value = (high + constants[2]) >> constants[3];
    const int32_t above = value < p->clamp_min ? p->clamp_min : value;
    return (int8_t)(above > p->clamp_max ? p->clamp_max : above);
}

/* Four output channels of two pixels or rows, of which the second may be the first again. weights: for each of
 * `depth` inputs those of the four channels. */
UACCEL_SHARED void uaccel_blocked_2x4(const struct uaccel_blocked_finish *p, const int8_t *first,
                                      const int8_t *second, uaccel_index depth, const int8_t *weights,
                                      const int32_t *constants, int8_t *results)
{
    int32_t a0 = constants[0], a1 = constants[4], a2 = constants[8], a3 = constants[12];
    int32_t b0 = a0, b1 = a1, b2 = a2, b3 = a3;
    for (const int8_t *end = first + depth; first != end;) {
        const int32_t x = *first++, y = *second++;
        a0 += x * weights[0];
        b0 += y * weights[0];
        a1 += x * weights[1];
        b1 += y * weights[1];
        a2 += x * weights[2];
        b2 += y * weights[2];
        a3 += x * weights[3];
        b3 += y * weights[3];
        weights += 4;
    }
    results[0] = uaccel_blocked_round(p, a0, constants);
    results[1] = uaccel_blocked_round(p, a1, constants + 4);
    results[2] = uaccel_blocked_round(p, a2, constants + 8);
    results[3] = uaccel_blocked_round(p, a3, constants + 12);
    results[4] = uaccel_blocked_round(p, b0, constants);
    results[5] = uaccel_blocked_round(p, b1, constants + 4);
    results[6] = uaccel_blocked_round(p, b2, constants + 8);
    results[7] = uaccel_blocked_round(p, b3, constants + 12);
}

/* All output channels of two pixels. constants: filled up with channels of zeros to a multiple of four. */
UACCEL_SHARED void uaccel_blocked_channels(const struct uaccel_blocked_finish *p, const int8_t *first,
                                           const int8_t *second, uaccel_index depth, const int8_t *weights,
                                           const int32_t *constants, uaccel_index channels, int8_t *output1,
                                           int8_t *output2)
{
    for (uaccel_index channel = 0; channel < channels; channel += 4) {
        const uaccel_index count = channels - channel < 4 ? channels - channel : 4;
        int8_t results[8];
        uaccel_blocked_2x4(p, first, second, depth, weights, constants, results);
        for (uaccel_index i = 0; i < count; ++i) {
            output1[channel + i] = results[i];
            output2[channel + i] = results[4 + i];
        }
        weights += 4 * depth;
        constants += 16;
    }
}

#endif
