/* SVDF and LSTM for any CPU. */
#ifndef UACCEL_RECURRENT_BLOCKED_H
#define UACCEL_RECURRENT_BLOCKED_H

#include "uaccel_dots_blocked.h"
#include "uaccel_int16_blocked.h"
#include "uaccel_recurrent.h"

/* Eight sums over input..end, on their scale. stream: their biases, for each byte the weights of eight rows, and the
 * multiplier, the rounding's half and the shift, or 0 and the shift to the left. Returns where it goes on. */
UACCEL_KERNEL const int32_t *uaccel_lstm_eight_blocked(const int8_t *input, const int8_t *end, const int32_t *stream,
                                                       int32_t *sums)
{
    const int32_t *const biases = stream;
    uaccel_eight_dots_blocked(input, (uaccel_index)(end - input), (const int8_t *)(stream + 8), sums);
    stream += 8 + 2 * (end - input);
    for (uaccel_index i = 0; i < 8; ++i) {
        int32_t value = sums[i] + biases[i];
        if (stream[1] != 0) {
            const int32_t high = uaccel_blocked_high(value, stream[0]);
            value = (high + (high >> 31) + stream[1]) >> stream[2];
        } else {
            value = uaccel_blocked_high(uaccel_shift_left(value, stream[2]), stream[0]);
        }
        sums[i] = uaccel_clamp16(value);
    }
    return stream + 3;
}

UACCEL_KERNEL void uaccel_lstm_gates_dots_blocked(const struct uaccel_lstm_gates *job, const int32_t *stream)
{
    int16_t *gates = job->gates;
    for (uaccel_index eight = job->eights; eight > 0; --eight) {
        int32_t given[8], kept[8];
        stream = uaccel_lstm_eight_blocked(job->input, job->input_end, stream, given);
        stream = uaccel_lstm_eight_blocked(job->hidden, job->hidden_end, stream, kept);
        for (uaccel_index i = 0; i < 8; ++i) {
            *gates++ = (int16_t)uaccel_clamp16(given[i] + kept[i]);
        }
    }
}

/* LSTM on int16 vectors for any CPU. */
struct uaccel_lstm_blocked16 {
    struct uaccel_lstm layer;
    struct uaccel_fully_connected_blocked given, kept; /* all gates' sums of an input and of a hidden state */
};

/* stream: the constants of all gates, and their weights. */
UACCEL_KERNEL void uaccel_lstm_row_blocked16(const struct uaccel_fully_connected_blocked *p, const int16_t *input,
                                             const int32_t *stream, int16_t *output, void *scratch)
{
    const int8_t *const weights = (const int8_t *)(stream + 3 * ((p->units + 7) & ~(uaccel_index)7));
    (void)scratch;
    uaccel_fully_connected_blocked_s16(p, input, weights, stream, output);
}

#define UACCEL_DOTS(name) name##_dots_blocked
#define UACCEL_SHOW_PRODUCT uaccel_blocked_high
#define UACCEL_LSTM16(name) name##_blocked16
#define UACCEL_LSTM16_ROW uaccel_lstm_row_blocked16
#include "uaccel_recurrent_scalar_body.h"

#endif
