/* Depthwise convolution, NHWC, weights HWC, any channel multiplier, portable C.
 *
 * The bias already holds -input_zero_point * sum(weights); padded elements count as the input's zero point. */
#ifndef UACCEL_DEPTHWISE_CONV2D_H
#define UACCEL_DEPTHWISE_CONV2D_H

#include "uaccel_fixedpoint.h"
#include "uaccel_float32.h"

struct uaccel_depthwise_conv2d {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width;
    uaccel_index dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point, output_zero_point;
    int32_t clamp_min, clamp_max;
    uaccel_index scale_step; /* 1: a multiplier and a shift per output channel, 0: one for all */
};

#define UACCEL_BODY "uaccel_depthwise_conv2d_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

#endif
