/* LSTM on int16 vectors for Arm's DSP extension. */
#ifndef UACCEL_LSTM16_DSP_H
#define UACCEL_LSTM16_DSP_H

#include "uaccel_int16_dsp.h"
#include "uaccel_lstm_show_dsp.h"

struct uaccel_lstm_dsp16 {
    struct uaccel_lstm layer;
    struct uaccel_fully_connected_dsp16 given, kept; /* all gates' sums of an input and of a hidden state */
};

#define UACCEL_LSTM16(name) name##_dsp16
#define UACCEL_LSTM16_SHOW uaccel_lstm_show_s16_dsp
#define UACCEL_LSTM16_ROW uaccel_fully_connected_dsp_s16
#include "uaccel_lstm16_body.h"

#endif
