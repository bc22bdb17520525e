/* What SVDF and LSTM by dot products work on. */
#ifndef UACCEL_RECURRENT_H
#define UACCEL_RECURRENT_H

#include "uaccel_dots.h"
#include "uaccel_lstm.h"
#include "uaccel_svdf.h"

struct uaccel_svdf_dots {
    struct uaccel_svdf layer;
    uaccel_index filled; /* bytes of a frame, filled up */
};

struct uaccel_lstm_dots {
    struct uaccel_lstm layer;
    uaccel_index filled, hidden_filled; /* bytes of an input and of a hidden state, filled up */
};

/* Gates of one step: sums of both vectors in units of 2^-12, each of 16 bits, added up; eight at a time. */
struct uaccel_lstm_gates {
    const int8_t *input, *input_end, *hidden, *hidden_end; /* whole steps of the family */
    int16_t *gates;
    uaccel_index eights; /* one at least */
};
#ifdef __arm__ /* where assembly reads it */
UACCEL_AT4(uaccel_lstm_gates, 0, input, input_end, hidden, hidden_end);
UACCEL_AT(uaccel_lstm_gates, gates, 16);
UACCEL_AT(uaccel_lstm_gates, eights, 20);
#endif

#endif
