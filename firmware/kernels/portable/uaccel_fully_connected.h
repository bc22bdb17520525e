/* Fully connected, weights [units, depth], portable C.
 *
 * The bias already holds -input_zero_point * sum(weights of the unit). */
#ifndef UACCEL_FULLY_CONNECTED_H
#define UACCEL_FULLY_CONNECTED_H

#include "uaccel_weights.h"

struct uaccel_fully_connected {
    uaccel_index rows, depth, units;
    struct uaccel_output output;
};

#define UACCEL_BODY "uaccel_fully_connected_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

#endif
