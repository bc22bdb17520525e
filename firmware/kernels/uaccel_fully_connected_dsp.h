/* Fully connected for Arm's DSP extension: int8, rows whose length is a multiple of four, eight units at a time. */
#ifndef UACCEL_FULLY_CONNECTED_DSP_H
#define UACCEL_FULLY_CONNECTED_DSP_H

#include "uaccel_dsp.h"

struct uaccel_fully_connected_dsp {
    uaccel_index rows, depth, units;
    uaccel_index block_words; /* words of the stream for eight units */
    struct uaccel_dsp_finish finish;
};

#define UACCEL_BODY "uaccel_fully_connected_dsp_body.h"
#define UACCEL_NEEDS_FPU
#include "uaccel_roundings.h"

#endif
