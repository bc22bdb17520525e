/* int32 sums as the real numbers that they mean: bias, a scale per channel, and what the bias is beside whole sums. */
#ifndef UACCEL_DEQUANTIZE_SUMS_H
#define UACCEL_DEQUANTIZE_SUMS_H

#include "uaccel_fixedpoint.h"

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
