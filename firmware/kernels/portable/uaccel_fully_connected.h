/* Fully connected, weights [units, depth], portable C.
 *
 * The bias already holds -input_zero_point * sum(weights of the unit). */
#ifndef UACCEL_FULLY_CONNECTED_H
#define UACCEL_FULLY_CONNECTED_H

#include "uaccel_fixedpoint.h"
#include "uaccel_float32.h"

struct uaccel_fully_connected {
    uaccel_index rows, depth, units;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
    uaccel_index scale_step; /* 1: a multiplier and a shift per output channel, 0: one for all */
};

#define UACCEL_BODY "uaccel_fully_connected_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

#endif
