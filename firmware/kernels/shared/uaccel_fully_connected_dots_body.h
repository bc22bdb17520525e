/* Fully connected, int8, with biases of any size: for one family, which UACCEL_DOTS names; included once a
 * family. */

#ifndef UACCEL_FULLY_CONNECTED_DOTS_H
#define UACCEL_FULLY_CONNECTED_DOTS_H

#include "uaccel_weights.h"

struct uaccel_fully_connected_dots {
    struct uaccel_fully_connected layer;
    uaccel_index filled; /* bytes of a row, filled up */
};

#endif

/* scratch: a row filled up, unless it is. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_fully_connected_s8)(const struct uaccel_fully_connected_dots *p,
                                                          const int8_t *input, const int32_t *weights,
                                                          const int32_t *bias, const int32_t *multiplier,
                                                          const int8_t *shift, int8_t *output, void *scratch)
{
    const struct uaccel_fully_connected *const layer = &p->layer;
    for (uaccel_index row = 0; row < layer->rows; ++row) {
        const int8_t *const x = uaccel_dots_vector(input, layer->depth, p->filled, scratch);
        const int32_t *eight = weights;
        for (uaccel_index unit = 0; unit < layer->units; unit += 8) {
            const uaccel_index count = layer->units - unit < 8 ? layer->units - unit : 8;
            int32_t sums[8];
            UACCEL_DOTS(uaccel_rows)(x, p->filled, eight, count, sums);
            eight += UACCEL_DOTS(uaccel_words)(p->filled, count);
            for (uaccel_index i = 0; i < count; ++i) {
                const int32_t acc = uaccel_add_wrapping(sums[i], bias[unit + i]);
                *output++ = uaccel_output_s8(&layer->output, acc, multiplier, shift, unit + i);
            }
        }
        input += layer->depth;
    }
}

#undef UACCEL_DOTS
