/* LSTM for Arm's DSP extension. */
#ifndef UACCEL_LSTM_DOTS_DSP_H
#define UACCEL_LSTM_DOTS_DSP_H

#include "uaccel_dots_dsp.h"

#define uaccel_lstm_show_dots_dsp uaccel_lstm_show_s8
#define UACCEL_DOTS(name) name##_dots_dsp
#include "uaccel_lstm_dots_body.h"
#undef UACCEL_DOTS
#undef uaccel_lstm_show_dots_dsp

#endif
