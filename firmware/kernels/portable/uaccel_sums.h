/* int32 sums of accelerators, from inputs or to results, portable C. */
#ifndef UACCEL_SUMS_H
#define UACCEL_SUMS_H

#include "uaccel_float32.h"

/* Sums of rows times transposed weights, four units at a time. */
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

/* An accelerator's int32 sums to int8: bias, requantisation per channel, zero point, clamp. */
struct uaccel_requantize_sums {
    uaccel_index outer, channels, inner; /* extents before, of and after the axis of the channels */
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
    uaccel_index scale_step; /* 1: a multiplier and a shift per channel, 0: one for all */
};

/* The output may begin where the sums begin: each element is written after the sum in its bytes was read. */
#define UACCEL_REQUANTIZE_SUMS(name, requantise)                                                                  \
    UACCEL_KERNEL void name(const struct uaccel_requantize_sums *p, const int32_t *sums, const int32_t *bias,     \
                            const int32_t *multiplier, const int8_t *shift, int8_t *output)                       \
    {                                                                                                             \
        /* clamped before the zero point is added, which then cannot overflow */                                  \
        const int32_t low = p->clamp_min - p->output_zero_point;                                                  \
        const int32_t high = p->clamp_max - p->output_zero_point;                                                 \
        for (uaccel_index o = 0; o < p->outer; ++o) {                                                             \
            for (uaccel_index c = 0; c < p->channels; ++c) {                                                      \
                const int32_t factor = multiplier[c * p->scale_step], power = shift[c * p->scale_step];           \
                for (uaccel_index i = 0; i < p->inner; ++i) {                                                     \
                    const int32_t acc = uaccel_add_wrapping(*sums++, bias[c]);                                    \
                    const int32_t scaled = requantise(acc, factor, power);                                        \
                    *output++ = (int8_t)(uaccel_clamp(scaled, low, high) + p->output_zero_point);                 \
                }                                                                                                 \
            }                                                                                                     \
        }                                                                                                         \
    }

UACCEL_REQUANTIZE_SUMS(uaccel_requantize_sums_s8, uaccel_requantise)
UACCEL_REQUANTIZE_SUMS(uaccel_requantize_sums_s8_float32, uaccel_requantise_float32)

#undef UACCEL_REQUANTIZE_SUMS

/* int32 sums as the real numbers that they mean: bias, a scale per channel, and what the bias is beside whole sums. */
struct uaccel_dequantize_sums {
    uaccel_index outer, channels, inner; /* extents before, of and after the axis of the channels */
};

/* The output may lie where the sums do, whose bytes are then read as what they are. */
UACCEL_KERNEL void uaccel_dequantize_sums(const struct uaccel_dequantize_sums *p, const void *sums,
                                          const int32_t *bias, const float *scale, const float *rest, void *output)
{
    const unsigned char *from = sums;
    unsigned char *to = output;
    for (uaccel_index o = 0; o < p->outer; ++o) {
        for (uaccel_index c = 0; c < p->channels; ++c) {
            for (uaccel_index i = 0; i < p->inner; ++i) {
                int32_t sum;
                memcpy(&sum, from, sizeof sum);
                const float real = (float)uaccel_add_wrapping(sum, bias[c]) * scale[c] + rest[c];
                memcpy(to, &real, sizeof real);
                from += sizeof sum;
                to += sizeof real;
            }
        }
    }
}

#endif
