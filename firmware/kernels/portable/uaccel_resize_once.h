/* Bilinear resizing by exact positions, NHWC, the real result rounded once, portable C. */
#ifndef UACCEL_RESIZE_ONCE_H
#define UACCEL_RESIZE_ONCE_H

#include "uaccel_half_even.h"

struct uaccel_resize_once {
    uaccel_index batch, in_height, in_width;
    uaccel_index out_height, out_width, channels;
    int32_t parts_y, parts_x; /* of a pixel */
    int32_t input_zero_point;
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

#define UACCEL_BODY "uaccel_resize_once_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
