/* Fully connected for any CPU, one row, eight units at a time: int8. */
#ifndef UACCEL_FULLY_CONNECTED_BLOCKED_H
#define UACCEL_FULLY_CONNECTED_BLOCKED_H

#include "uaccel_blocked.h"

struct uaccel_fully_connected_blocked {
    uaccel_index depth, units;
    struct uaccel_blocked_finish finish;
};

#define UACCEL_BODY "uaccel_fully_connected_blocked_body.h"
#include "uaccel_roundings.h"

#endif
