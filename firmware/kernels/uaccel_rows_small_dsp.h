/* Makes what uaccel_depthwise_rows_dsp.h reads of each channel from fewer bytes of flash: it is worked out into scratch
 * memory before the layer begins. */
#ifndef UACCEL_ROWS_SMALL_DSP_H
#define UACCEL_ROWS_SMALL_DSP_H

#include "uaccel_dsp.h"

struct uaccel_rows_small_dsp {
    uaccel_index channels;
    int32_t zero_point;
    uaccel_index scale_step; /* 1: channels have scales of their own; 0: one serves all */
};

/* weights: nine of each channel. stream: of each twice the sum at the start, multiplier, offset, and three words of
 * weights, with the shift in the last byte of the first. */
UACCEL_SHARED void uaccel_rows_small_dsp(const struct uaccel_rows_small_dsp *p, const int8_t *weights,
                                         const int32_t *bias, const int32_t *multiplier, const int8_t *shift,
                                         void *stream)
{
    int32_t *target = stream;
    for (uaccel_index channel = 0; channel < p->channels; ++channel) {
        const int32_t right = shift[channel * p->scale_step];
        *target++ = 2 * bias[channel];
        *target++ = multiplier[channel * p->scale_step];
        *target++ = (int32_t)((uint32_t)(2 * p->zero_point + 1) << right) >> 1;
        for (uaccel_index row = 0; row < 3; ++row) {
            int8_t *const bytes = (int8_t *)target++;
            memcpy(bytes, weights, 3);
            bytes[3] = row == 0 ? (int8_t)right : 0;
            weights += 3;
        }
    }
}

#endif
