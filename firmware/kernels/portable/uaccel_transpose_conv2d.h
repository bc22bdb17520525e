/* Transposed convolution, NHWC, weights OHWI, portable C.
 *
 * Every output pixel gathers what reaches it, so that no memory for sums is needed: of the window's rows and columns
 * only every stride-th can reach a given pixel. */
#ifndef UACCEL_TRANSPOSE_CONV2D_H
#define UACCEL_TRANSPOSE_CONV2D_H

#include "uaccel_weights.h"

struct uaccel_transpose_conv2d {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_output output;
};

#define UACCEL_BODY "uaccel_transpose_conv2d_body.h"
#define UACCEL_TYPES 4
#include "uaccel_types.h"

#endif
