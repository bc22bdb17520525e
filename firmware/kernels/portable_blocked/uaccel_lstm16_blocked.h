/* LSTM on int16 vectors for any CPU. */
#ifndef UACCEL_LSTM16_BLOCKED_H
#define UACCEL_LSTM16_BLOCKED_H

#include "uaccel_int16_blocked.h"
#include "uaccel_lstm_show_blocked.h"

struct uaccel_lstm_blocked16 {
    struct uaccel_lstm layer;
    struct uaccel_fully_connected_blocked given, kept; /* all gates' sums of an input and of a hidden state */
};

/* stream: the constants of all gates, and their weights. */
UACCEL_KERNEL void uaccel_lstm_row_blocked16(const struct uaccel_fully_connected_blocked *p, const int16_t *input,
                                             const int32_t *stream, int16_t *output, void *scratch)
{
    const int8_t *const weights = (const int8_t *)(stream + 4 * ((p->units + 7) & ~(uaccel_index)7));
    (void)scratch;
    uaccel_fully_connected_blocked_s16(p, input, weights, stream, output);
}

#define UACCEL_LSTM16(name) name##_blocked16
#define UACCEL_LSTM16_SHOW uaccel_lstm_show_s16_blocked
#define UACCEL_LSTM16_ROW uaccel_lstm_row_blocked16
#include "uaccel_lstm16_body.h"

#endif
