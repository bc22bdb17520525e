/* Depthwise convolution, NHWC, weights HWC, any channel multiplier, portable C.
 *
 * The bias already holds -input_zero_point * sum(weights); padded elements count as the input's zero point. */
#ifndef UACCEL_DEPTHWISE_CONV2D_H
#define UACCEL_DEPTHWISE_CONV2D_H

#include "uaccel_weights.h"

struct uaccel_depthwise_conv2d {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width;
    uaccel_index dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_output output;
};

#define UACCEL_BODY "uaccel_depthwise_conv2d_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

#endif
