/* LSTM on int8 vectors by dot products: for one family, which UACCEL_DOTS names; included once a
 * family. */

#ifndef UACCEL_LSTM_DOTS_H
#define UACCEL_LSTM_DOTS_H

#include "uaccel_lstm.h"

struct uaccel_lstm_dots {
    struct uaccel_lstm layer;
    uaccel_index filled, hidden_filled; /* bytes of an input and of a hidden state, filled up */
};

#endif

/* Rows of weights times a vector for every gate, in units of 2^-12; added to what is there already if `add`. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_lstm_gates_s8)(uaccel_index units, const int8_t *vector, uaccel_index filled,
                                                     const int32_t *weights, const int32_t *bias,
                                                     const int32_t *scales, bool add, int16_t *gates)
{
    for (uaccel_index gate = 0; gate < 4; ++gate) {
        const struct uaccel_dots_scale scale = {scales[4 * gate], scales[4 * gate + 1]};
        for (uaccel_index unit = 0; unit < units; unit += 8) {
            const uaccel_index count = units - unit < 8 ? units - unit : 8;
            int32_t sums[8];
            UACCEL_DOTS(uaccel_rows)(vector, filled, weights, count, sums);
            weights += UACCEL_DOTS(uaccel_words)(filled, count);
            UACCEL_DOTS(uaccel_scaled)(sums, bias, count, scale);
            bias += count;
            for (uaccel_index i = 0; i < count; ++i) {
                const int32_t value = uaccel_clamp16(sums[i]);
                *gates = (int16_t)(add ? uaccel_clamp16(*gates + value) : value);
                ++gates;
            }
        }
    }
}

/* scratch: four gates of each unit, int16, and a vector filled up, unless both kinds are. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_lstm_s8)(const struct uaccel_lstm_dots *p, const int8_t *input,
                                               const int8_t *hidden, const int16_t *cell, const int32_t *weights,
                                               const int32_t *recurrent_weights, const int32_t *bias,
                                               const int32_t *recurrent_bias, const int32_t *scales,
                                               const uint16_t *points, int8_t *output, int8_t *hidden_after,
                                               int16_t *cell_after, void *scratch)
{
    const struct uaccel_lstm *const layer = &p->layer;
    const uaccel_index units = layer->units;
    int16_t *const gates = scratch;
    int8_t *const vector = (int8_t *)(gates + 4 * units);
    for (uaccel_index i = 0; i < layer->batch * units; ++i) {
        hidden_after[i] = hidden[i];
        cell_after[i] = cell[i];
    }
    for (uaccel_index b = 0; b < layer->batch; ++b) {
        for (uaccel_index t = 0; t < layer->steps; ++t) {
            const uaccel_index at = b * layer->batch_stride + t * layer->step_stride;
            const int8_t *x = uaccel_dots_vector(input + at * layer->depth, layer->depth, p->filled, vector);
            UACCEL_DOTS(uaccel_lstm_gates_s8)(units, x, p->filled, weights, bias, scales, false, gates);
            x = uaccel_dots_vector(hidden_after + b * units, units, p->hidden_filled, vector);
            UACCEL_DOTS(uaccel_lstm_gates_s8)(units, x, p->hidden_filled, recurrent_weights, recurrent_bias,
                                              scales + 2, true, gates);
            UACCEL_DOTS(uaccel_lstm_show)(layer, points, output + at * units, hidden_after + b * units,
                                          cell_after + b * units, gates);
        }
    }
}
