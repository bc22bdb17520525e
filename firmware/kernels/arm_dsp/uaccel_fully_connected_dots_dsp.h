/* Fully connected for Arm's DSP extension, with biases of any size. */
#ifndef UACCEL_FULLY_CONNECTED_DOTS_DSP_H
#define UACCEL_FULLY_CONNECTED_DOTS_DSP_H

#include "uaccel_dots_dsp.h"

#define UACCEL_DOTS(name) name##_dots_dsp
#include "uaccel_fully_connected_dots_body.h"

#endif
