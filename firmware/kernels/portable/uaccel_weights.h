/* Layers with weights, portable C: convolutions, NHWC, and fully connected layers. */
#ifndef UACCEL_WEIGHTS_H
#define UACCEL_WEIGHTS_H

#include "uaccel_fixedpoint.h"
#include "uaccel_float32.h"

/* The end of a layer with weights. */
struct uaccel_output {
    int32_t zero_point, clamp_min, clamp_max;
    uaccel_index scale_step; /* 1: a multiplier and a shift per output channel, 0: one for all */
};

/* The bias of this layer and the next two already holds -input_zero_point * sum(weights), so the loops multiply raw
 * inputs; padded elements count as the input's zero point. Weights: [units, depth]. */
struct uaccel_fully_connected {
    uaccel_index rows, depth, units;
    struct uaccel_output output;
};

/* Weights: OHWI. */
struct uaccel_conv2d {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    struct uaccel_output output;
    uaccel_index groups;
};

/* Weights: HWC. Any channel multiplier. */
struct uaccel_depthwise_conv2d {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    struct uaccel_output output;
};

/* How weights lie: their type, the row `number` of `size` weights each, where a row has the weight `number`, what lies
 * there, and the products of a row, added to `acc`. uaccel_int4.h has another way. */
#define UACCEL_STORED int8_t
#define UACCEL_ROW(weights, number, size) ((weights) + (number) * (size))
#define UACCEL_FROM(row, number) ((row) + (number))
#define UACCEL_HERE(place, number) ((void)(number), *(place))
#define UACCEL_PRODUCTS UACCEL_FN(uaccel_products)

#define UACCEL_BODY "uaccel_weights_body.h"
#define UACCEL_TYPES 6
#include "uaccel_types.h"

/* Transposed convolution, weights OHWI. Every output pixel gathers what reaches it, so that no memory for sums is
 * needed: of the window's rows and columns only every stride-th can reach a given pixel. */
struct uaccel_transpose_conv2d {
    struct uaccel_geometry geo;
    int32_t input_zero_point;
    struct uaccel_output output;
};

#define UACCEL_BODY "uaccel_transpose_conv2d_body.h"
#define UACCEL_TYPES 4
#include "uaccel_types.h"

#endif
