/* LSTM on int8 vectors by dot products: for one family, which UACCEL_DOTS names; included once a
 * family, behind uaccel_lstm_dots.h. */

/* scratch: four gates of each unit, int16, by whole eights, and both vectors filled up, unless they are. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_lstm_s8)(const struct uaccel_lstm_dots *p, const int8_t *input,
                                               const int8_t *hidden, const int16_t *cell, const int32_t *stream,
                                               const uint16_t *points, int8_t *output, int8_t *hidden_after,
                                               int16_t *cell_after, void *scratch)
{
    const struct uaccel_lstm *const layer = &p->layer;
    const uaccel_index units = layer->units, room = (units + 7) & ~(uaccel_index)7;
    struct uaccel_lstm_gates job;
    job.gates = scratch;
    job.eights = room / 2;
    int8_t *const given = (int8_t *)(job.gates + 4 * room), *const kept = given + p->filled;
    memmove(hidden_after, hidden, (size_t)(layer->batch * units));
    memmove(cell_after, cell, (size_t)(layer->batch * units) * sizeof *cell);
    for (uaccel_index b = 0; b < layer->batch; ++b) {
        for (uaccel_index t = 0; t < layer->steps; ++t) {
            const uaccel_index at = b * layer->batch_stride + t * layer->step_stride;
            job.input = uaccel_dots_vector(input + at * layer->depth, layer->depth, p->filled, given);
            job.input_end = job.input + p->filled;
            job.hidden = uaccel_dots_vector(hidden_after + b * units, units, p->hidden_filled, kept);
            job.hidden_end = job.hidden + p->hidden_filled;
            UACCEL_DOTS(uaccel_lstm_gates)(&job, stream);
            UACCEL_DOTS(uaccel_lstm_show)(layer, points, output + at * units, hidden_after + b * units,
                                          cell_after + b * units, job.gates, room);
        }
    }
}
