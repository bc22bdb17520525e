/* The LSTM kernel for one element type; included by uaccel_lstm.h, once a type. */

/* A row of weights times a vector, in units of 2^-12. */
UACCEL_KERNEL int32_t UACCEL_FN(uaccel_lstm_sum)(const int8_t *row, const UACCEL_ELEMENT *vector, uaccel_index depth,
                                                 UACCEL_ACCUMULATOR bias, const int32_t *scale)
{
    const UACCEL_ACCUMULATOR acc = UACCEL_FN(uaccel_products)(bias, vector, row, depth);
    return uaccel_clamp16(UACCEL_REQUANTISE(acc, scale[0], scale[1]));
}

/* From the gates' sums to the cell and what is shown of it. */
UACCEL_KERNEL void UACCEL_FN(uaccel_lstm_show)(const struct uaccel_lstm *p, const uint16_t *points,
                                               UACCEL_ELEMENT *output, UACCEL_ELEMENT *hidden, int16_t *cell,
                                               int16_t *gates)
{
    uaccel_lstm_logistic(2 * p->units, points, gates);
    uaccel_lstm_tanh(p->units, 3, 0, points, gates + 2 * p->units, gates + 2 * p->units);
    uaccel_lstm_logistic(p->units, points, gates + 3 * p->units);
    uaccel_lstm_update_cell(p, gates, cell);
    uaccel_lstm_tanh(p->units, p->tanh_multiplier, p->tanh_right_shift, points, cell, gates);
    for (uaccel_index u = 0; u < p->units; ++u) {
        const int32_t product = (int32_t)gates[u] * gates[3 * p->units + u];
        const int32_t given = uaccel_requantise(product, p->give_multiplier, p->give_shift);
        hidden[u] = (UACCEL_ELEMENT)uaccel_finish(given, p->hidden_zero_point, p->hidden_min, p->hidden_max);
        output[u] = hidden[u];
    }
}

/* One step of one sequence. */
UACCEL_KERNEL void UACCEL_FN(uaccel_lstm_step)(const struct uaccel_lstm *p, const UACCEL_ELEMENT *input,
                                               const int8_t *weights, const int8_t *recurrent_weights,
                                               const UACCEL_ACCUMULATOR *bias,
                                               const UACCEL_ACCUMULATOR *recurrent_bias, const int32_t *scales,
                                               const uint16_t *points, UACCEL_ELEMENT *output, UACCEL_ELEMENT *hidden,
                                               int16_t *cell, int16_t *gates)
{
    for (uaccel_index i = 0; i < 4 * p->units; ++i) {
        const int32_t *const scale = scales + 4 * (i / p->units);
        const int32_t given = UACCEL_FN(uaccel_lstm_sum)(weights, input, p->depth, bias[i], scale);
        const int32_t kept = UACCEL_FN(uaccel_lstm_sum)(recurrent_weights, hidden, p->units, recurrent_bias[i],
                                                        scale + 2);
        gates[i] = (int16_t)uaccel_clamp16(given + kept);
        weights += p->depth;
        recurrent_weights += p->units;
    }
    UACCEL_FN(uaccel_lstm_show)(p, points, output, hidden, cell, gates);
}

/* scratch: four gates of each unit, int16. */
UACCEL_KERNEL void UACCEL_FN(uaccel_lstm)(const struct uaccel_lstm *p, const UACCEL_ELEMENT *input,
                                          const UACCEL_ELEMENT *hidden, const int16_t *cell, const int8_t *weights,
                                          const int8_t *recurrent_weights, const UACCEL_ACCUMULATOR *bias,
                                          const UACCEL_ACCUMULATOR *recurrent_bias, const int32_t *scales,
                                          const uint16_t *points, UACCEL_ELEMENT *output,
                                          UACCEL_ELEMENT *hidden_after, int16_t *cell_after, void *scratch)
{
    for (uaccel_index i = 0; i < p->batch * p->units; ++i) {
        hidden_after[i] = hidden[i];
        cell_after[i] = cell[i];
    }
    for (uaccel_index b = 0; b < p->batch; ++b) {
        for (uaccel_index t = 0; t < p->steps; ++t) {
            const uaccel_index vector = b * p->batch_stride + t * p->step_stride;
            UACCEL_FN(uaccel_lstm_step)(p, input + vector * p->depth, weights, recurrent_weights, bias,
                                        recurrent_bias, scales, points, output + vector * p->units,
                                        hidden_after + b * p->units, cell_after + b * p->units, (int16_t *)scratch);
        }
    }
}
