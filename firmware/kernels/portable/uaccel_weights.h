/* What portable layers with weights share: sums of products, and what becomes of a sum. */
#ifndef UACCEL_WEIGHTS_H
#define UACCEL_WEIGHTS_H

#include "uaccel_fixedpoint.h"
#include "uaccel_float32.h"

/* The end of a layer with weights. */
struct uaccel_output {
    int32_t zero_point, clamp_min, clamp_max;
    uaccel_index scale_step; /* 1: a multiplier and a shift per output channel, 0: one for all */
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

#endif
