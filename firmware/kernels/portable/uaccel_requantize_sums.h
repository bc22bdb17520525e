/* An accelerator's int32 sums to int8: bias, requantisation per channel, zero point, clamp, portable C. */
#ifndef UACCEL_REQUANTIZE_SUMS_H
#define UACCEL_REQUANTIZE_SUMS_H

#include "uaccel_fixedpoint.h"
#include "uaccel_float32.h"

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

#endif
