/* LSTM over a sequence of vectors, portable C: int8 or int16 vectors, gates and cell state of 16 bits.
 *
 * Gates lie in the order input, forget, cell, output. The biases already hold what the zero points take from the sums.
 * The states may be updated where they lie: before and after may be the same address. */
#ifndef UACCEL_LSTM_H
#define UACCEL_LSTM_H

#include "uaccel_elementwise.h"
#include "uaccel_weights.h"

struct uaccel_lstm {
    uaccel_index batch, steps, depth, units;
    uaccel_index batch_stride, step_stride; /* in vectors of the input and of the output */
    int32_t hidden_zero_point, hidden_min, hidden_max;
    int32_t cell_clip;                        /* 0: none */
    int32_t keep_multiplier, keep_shift;      /* of forget gate times cell state */
    int32_t take_multiplier, take_shift;      /* of input gate times cell gate */
    int32_t give_multiplier, give_shift;      /* of output gate times tanh of the cell state */
    int32_t tanh_multiplier, tanh_right_shift; /* from the cell state to the argument of the table */
};

UACCEL_KERNEL int32_t uaccel_clamp16(int32_t value)
{
    return uaccel_clamp(value, INT16_MIN, INT16_MAX);
}

UACCEL_KERNEL void uaccel_lstm_logistic(uaccel_index units, const uint16_t *points, int16_t *values)
{
    const struct uaccel_sigmoid16 curve = {units, 3, 0, 9, INT32_C(0x7FFF) << 10, 0, INT32_C(1) << 25, 10};
    uaccel_sigmoid16(&curve, values, points, values);
}

UACCEL_KERNEL void uaccel_lstm_tanh(uaccel_index units, int32_t multiplier, int32_t right_shift,
                                    const uint16_t *points, const int16_t *input, int16_t *output)
{
    const struct uaccel_sigmoid16 curve = {units, multiplier, right_shift, 8, INT32_C(0xFFFF) << 8,
                                            INT32_C(1) << 23, INT32_C(1) << 23, 8};
    uaccel_sigmoid16(&curve, input, points, output);
}

UACCEL_KERNEL void uaccel_lstm_update_cell(const struct uaccel_lstm *p, const int16_t *gates, int16_t *cell)
{
    const int16_t *const into = gates, *const forget = gates + p->units, *const update = gates + 2 * p->units;
    for (uaccel_index u = 0; u < p->units; ++u) {
        const int32_t kept = uaccel_requantise((int32_t)forget[u] * cell[u], p->keep_multiplier, p->keep_shift);
        const int32_t taken = uaccel_requantise((int32_t)into[u] * update[u], p->take_multiplier, p->take_shift);
        const int32_t total = uaccel_clamp16(uaccel_clamp16(kept) + uaccel_clamp16(taken));
        cell[u] = (int16_t)(p->cell_clip > 0 ? uaccel_clamp(total, -p->cell_clip, p->cell_clip) : total);
    }
}

#define UACCEL_BODY "uaccel_lstm_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
