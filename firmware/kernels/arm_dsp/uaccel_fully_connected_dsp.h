/* Fully connected for Arm's DSP extension: int8, one row, eight units at a time. */
#ifndef UACCEL_FULLY_CONNECTED_DSP_H
#define UACCEL_FULLY_CONNECTED_DSP_H

#include "uaccel_dots.h"
#include "uaccel_dsp.h"

struct uaccel_fully_connected_dsp {
    uaccel_index depth, filled; /* bytes of the row, and in whole words */
    uaccel_index units;
    int32_t multiplier, offset, shift; /* where all units have one scale */
    struct uaccel_dsp_finish finish;
};

#define UACCEL_BODY "uaccel_fully_connected_dsp_body.h"
#define UACCEL_NEEDS_FPU
#define UACCEL_DEEP_TOO
#include "uaccel_roundings.h"

#endif
