/* What an LSTM makes of its gates, for any CPU: unit by unit, int8 or int16. */
#ifndef UACCEL_LSTM_SHOW_BLOCKED_H
#define UACCEL_LSTM_SHOW_BLOCKED_H

#include "uaccel_blocked.h"
#include "uaccel_lstm.h"

#define UACCEL_SHOW(name) name##_blocked
#define UACCEL_SHOW_PRODUCT uaccel_blocked_high
#include "uaccel_lstm_show_body.h"

#endif
