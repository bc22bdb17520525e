/* LSTM for any CPU: eight gates at a time. */
#ifndef UACCEL_LSTM_DOTS_BLOCKED_H
#define UACCEL_LSTM_DOTS_BLOCKED_H

#include "uaccel_dots_blocked.h"
#include "uaccel_lstm_dots.h"
#include "uaccel_lstm_show_blocked.h"

/* Eight sums over input..end, on their scale. stream: their biases, for each byte the weights of eight rows, and the
 * multiplier, the rounding's half and the shift, or 0 and the shift to the left. Returns where it goes on. */
UACCEL_KERNEL const int32_t *uaccel_lstm_eight_blocked(const int8_t *input, const int8_t *end, const int32_t *stream,
                                                       int32_t *sums)
{
    memcpy(sums, stream, 8 * sizeof *sums);
    uaccel_eight_dots_blocked(input, end, (const int8_t *)(stream + 8), sums);
    stream += 8 + 2 * (end - input);
    for (uaccel_index i = 0; i < 8; ++i) {
        int32_t value;
        if (stream[1] != 0) {
            const int32_t high = uaccel_blocked_high(sums[i], stream[0]);
            value = (high + (high >> 31) + stream[1]) >> stream[2];
        } else {
            value = uaccel_blocked_high(uaccel_shift_left(sums[i], stream[2]), stream[0]);
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

#define UACCEL_DOTS(name) name##_dots_blocked
#define uaccel_lstm_show_dots_blocked uaccel_lstm_show_s8_blocked
#include "uaccel_lstm_dots_body.h"
#undef uaccel_lstm_show_dots_blocked
#undef UACCEL_DOTS

#endif
