/* Transposed convolution, NHWC, weights OHWI, portable C.
 *
 * Every output pixel gathers what reaches it, so that no memory for sums is needed: of the window's rows and columns
 * only every stride-th can reach a given pixel. */
#ifndef UACCEL_TRANSPOSE_CONV2D_H
#define UACCEL_TRANSPOSE_CONV2D_H

#include "uaccel_weights.h"

struct uaccel_transpose_conv2d {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    struct uaccel_output output;
};

#define UACCEL_BODY "uaccel_transpose_conv2d_body.h"
#define UACCEL_TYPES 4
#include "uaccel_types.h"

#endif
