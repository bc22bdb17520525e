/* LSTM on int16 vectors for Arm Helium. */
#ifndef UACCEL_LSTM16_HELIUM_H
#define UACCEL_LSTM16_HELIUM_H

#include "uaccel_int16_helium.h"
#include "uaccel_lstm_show_helium.h"

struct uaccel_lstm_helium16 {
    struct uaccel_lstm layer;
    struct uaccel_fully_connected_helium16 given, kept; /* all gates' sums of an input and of a hidden state */
};

#define UACCEL_LSTM16(name) name##_helium16
#define UACCEL_LSTM16_SHOW uaccel_lstm_show_helium_s16
#define UACCEL_LSTM16_ROW uaccel_fully_connected_helium_s16
#include "uaccel_lstm16_body.h"

#endif
