/* Fully connected for Arm Helium, with biases of any size. */
#ifndef UACCEL_FULLY_CONNECTED_DOTS_HELIUM_H
#define UACCEL_FULLY_CONNECTED_DOTS_HELIUM_H

#include "uaccel_dots_helium.h"

#define UACCEL_DOTS(name) name##_dots_helium
#include "uaccel_fully_connected_dots_body.h"

#endif
