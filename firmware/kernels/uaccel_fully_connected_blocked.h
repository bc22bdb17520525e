/* Fully connected for any CPU, one row, eight units at a time: int8. */
#ifndef UACCEL_FULLY_CONNECTED_BLOCKED_H
#define UACCEL_FULLY_CONNECTED_BLOCKED_H

#include "uaccel_blocked.h"

struct uaccel_fully_connected_blocked {
    uaccel_index depth, units;
    struct uaccel_blocked_finish finish;
};

#include "uaccel_round_tflite.h"
#include "uaccel_fully_connected_blocked_body.h"
#include "uaccel_round_end.h"

#include "uaccel_round_float32.h"
#include "uaccel_fully_connected_blocked_body.h"
#include "uaccel_round_end.h"

#endif
