/* Fully connected for any CPU, with biases of any size. */
#ifndef UACCEL_FULLY_CONNECTED_DOTS_BLOCKED_H
#define UACCEL_FULLY_CONNECTED_DOTS_BLOCKED_H

#include "uaccel_dots_blocked.h"

#define UACCEL_DOTS(name) name##_dots_blocked
#include "uaccel_fully_connected_dots_body.h"

#endif
