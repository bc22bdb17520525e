/* LSTM on int16 vectors for one family: UACCEL_LSTM16 names the kernel and its structure, UACCEL_LSTM16_ROW the family's
 * fully connected layer of one row, UACCEL_LSTM16_SHOW what it makes of the gates. Included once a family. */

/* scratch: four gates of each unit twice, and what a row takes. */
UACCEL_KERNEL void UACCEL_LSTM16(uaccel_lstm_s16)(const struct UACCEL_LSTM16(uaccel_lstm) *p, const int16_t *input,
                                                  const int16_t *hidden, const int16_t *cell,
                                                  const int32_t *given_stream, const int32_t *kept_stream,
                                                  const uint16_t *points, int16_t *output, int16_t *hidden_after,
                                                  int16_t *cell_after, void *scratch)
{
    const struct uaccel_lstm *const layer = &p->layer;
    const uaccel_index units = layer->units;
    int16_t *const gates = scratch, *const kept = gates + 4 * units;
    for (uaccel_index i = 0; i < layer->batch * units; ++i) {
        hidden_after[i] = hidden[i];
        cell_after[i] = cell[i];
    }
    for (uaccel_index b = 0; b < layer->batch; ++b) {
        for (uaccel_index t = 0; t < layer->steps; ++t) {
            const uaccel_index at = b * layer->batch_stride + t * layer->step_stride;
            UACCEL_LSTM16_ROW(&p->given, input + at * layer->depth, given_stream, gates, kept + 4 * units);
            UACCEL_LSTM16_ROW(&p->kept, hidden_after + b * units, kept_stream, kept, kept + 4 * units);
            for (uaccel_index i = 0; i < 4 * units; ++i) {
                gates[i] = (int16_t)uaccel_clamp16((int32_t)gates[i] + kept[i]);
            }
            UACCEL_LSTM16_SHOW(layer, points, output + at * units, hidden_after + b * units, cell_after + b * units,
                               gates, units);
        }
    }
}

#undef UACCEL_LSTM16
#undef UACCEL_LSTM16_ROW
#undef UACCEL_LSTM16_SHOW
