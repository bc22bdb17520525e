/* Makes what uaccel_depthwise_rows_dsp.h reads of each channel from fewer bytes of flash: it is worked out into scratch
 * memory before the layer begins. */
#ifndef UACCEL_ROWS_SMALL_DSP_H
#define UACCEL_ROWS_SMALL_DSP_H

#include "uaccel_dsp.h"

struct uaccel_rows_small_dsp {
    uaccel_index channels;
    uaccel_index starts; /* how often a channel's stream begins with its sum */
    int32_t zero_point;
    uaccel_index scale_step; /* 1: channels have scales of their own; 0: one serves all */
};

/* weights: nine of each channel. stream: of each the sum at the start, multiplier, offset, shift, and of each row the
 * weights (0, 1) and (1, 2); sums and weights twice their value. */
UACCEL_SHARED void uaccel_rows_small_dsp(const struct uaccel_rows_small_dsp *p, const int8_t *weights,
                                         const int32_t *bias, const int32_t *multiplier, const int8_t *shift,
                                         void *stream)
{
    int32_t *target = stream;
    for (uaccel_index channel = 0; channel < p->channels; ++channel) {
        const int32_t right = shift[channel * p->scale_step];
        for (uaccel_index i = 0; i < p->starts; ++i) {
            *target++ = 2 * bias[channel];
        }
        *target++ = multiplier[channel * p->scale_step];
        *target++ = (int32_t)((uint32_t)(2 * p->zero_point + 1) << right) >> 1;
        *target++ = right;
        for (uaccel_index row = 0; row < 3; ++row) {
            *target++ = (int32_t)((uint32_t)(2 * weights[0] & 0xFFFF) | (uint32_t)(2 * weights[1]) << 16);
            *target++ = (int32_t)((uint32_t)(2 * weights[1] & 0xFFFF) | (uint32_t)(2 * weights[2]) << 16);
            weights += 3;
        }
    }
}

#endif
