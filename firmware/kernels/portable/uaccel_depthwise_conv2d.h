/* Depthwise convolution, NHWC, weights HWC, any channel multiplier, portable C.
 *
 * The bias already holds -input_zero_point * sum(weights); padded elements count as the input's zero point. */
#ifndef UACCEL_DEPTHWISE_CONV2D_H
#define UACCEL_DEPTHWISE_CONV2D_H

#include "uaccel_weights.h"

struct uaccel_depthwise_conv2d {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    struct uaccel_output output;
};

#define UACCEL_BODY "uaccel_depthwise_conv2d_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

#endif
