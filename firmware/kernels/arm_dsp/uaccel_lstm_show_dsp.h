/* What an LSTM makes of its gates, for Arm's DSP extension: unit by unit, int8 or int16. */
#ifndef UACCEL_LSTM_SHOW_DSP_H
#define UACCEL_LSTM_SHOW_DSP_H

#include "uaccel_dsp.h"
#include "uaccel_lstm.h"

#define UACCEL_SHOW(name) name##_dsp
#define UACCEL_SHOW_PRODUCT(x, multiplier) uaccel_dsp_high(2 * (x), multiplier)
#include "uaccel_lstm_show_body.h"

#endif
