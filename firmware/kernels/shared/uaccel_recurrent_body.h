/* SVDF and LSTM of int8 by dot products, and LSTM of int16: for one family, which UACCEL_DOTS names; included once a
 * family, behind uaccel_recurrent.h. UACCEL_LSTM16 names the kernel of int16 and its structure, UACCEL_LSTM16_ROW the
 * family's fully connected layer of one row. */

#define UACCEL_ELEMENT int8_t
#define UACCEL_FN(name) UACCEL_DOTS(name##_s8)
#include "uaccel_svdf_dots_type_body.h"

#define UACCEL_ELEMENT int16_t
#define UACCEL_FN(name) UACCEL_DOTS(name##_s16)
#include "uaccel_svdf_dots_type_body.h"

/* LSTM of int8. scratch: four gates of each unit, int16, by whole eights, and both vectors filled up, unless they
 * are. */
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
            UACCEL_DOTS(uaccel_lstm_show_s8)(layer, points, output + at * units, hidden_after + b * units,
                                             cell_after + b * units, job.gates, room);
        }
    }
}

/* LSTM of int16. scratch: four gates of each unit twice, and what a row takes. */
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
            UACCEL_DOTS(uaccel_lstm_show_s16)(layer, points, output + at * units, hidden_after + b * units,
                                              cell_after + b * units, gates, units);
        }
    }
}

#undef UACCEL_LSTM16
#undef UACCEL_LSTM16_ROW
#undef UACCEL_DOTS
