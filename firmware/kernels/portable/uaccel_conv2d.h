/* Convolution, NHWC, weights OHWI, portable C.
 *
 * The bias already holds -input_zero_point * sum(weights), so the loops multiply raw inputs; padded elements
 * count as the input's zero point. */
#ifndef UACCEL_CONV2D_H
#define UACCEL_CONV2D_H

#include "uaccel_weights.h"

struct uaccel_conv2d {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width;
    uaccel_index dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_output output;
    uaccel_index groups;
};

#define UACCEL_BODY "uaccel_conv2d_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

#endif
