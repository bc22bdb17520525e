/* Convolution, NHWC, weights OHWI, portable C.
 *
 * The bias already holds -input_zero_point * sum(weights), so the loops multiply raw inputs; padded elements
 * count as the input's zero point. */
#ifndef UACCEL_CONV2D_H
#define UACCEL_CONV2D_H

#include "uaccel_weights.h"

struct uaccel_conv2d {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    struct uaccel_output output;
    uaccel_index groups;
};

#define UACCEL_BODY "uaccel_conv2d_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

#endif
