/* What an LSTM makes of its gates, for Arm's DSP extension: unit by unit, int8 or int16. */
#ifndef UACCEL_LSTM_SHOW_DSP_H
#define UACCEL_LSTM_SHOW_DSP_H

#include "uaccel_dsp.h"
#include "uaccel_lstm.h"

/* round(2 * x * multiplier / 2^32), halves upwards. */
UACCEL_KERNEL int32_t uaccel_high_dsp(int32_t x, int32_t multiplier)
{
    int32_t high;
    __asm__("smmulr %0, %1, %2" : "=r"(high) : "r"(2 * x), "r"(multiplier));
    return high;
}

#define UACCEL_SHOW(name) name##_dsp
#define UACCEL_SHOW_PRODUCT uaccel_high_dsp
#include "uaccel_lstm_show_body.h"

#endif
