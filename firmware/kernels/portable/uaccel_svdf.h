/* SVDF on int8 frames, portable C; what is remembered of each frame is int8 or int16.
 *
 * The biases already hold what the zero points take from the sums. The state may be updated where it lies:
 * `state` and `after` may be the same address. */
#ifndef UACCEL_SVDF_H
#define UACCEL_SVDF_H

#include "uaccel_fixedpoint.h"

struct uaccel_svdf {
    uaccel_index batch, depth, units, rank, memory; /* units * rank filters, each with a memory of so many frames */
    int32_t state_zero_point, output_zero_point;
    int32_t state_min, state_max;
    int32_t feature_multiplier, feature_shift; /* from a frame's sum to what is remembered */
    int32_t output_multiplier, output_shift;
};

#define UACCEL_ELEMENT int8_t
#define UACCEL_FN(name) name##_s8
#include "uaccel_svdf_body.h"

#define UACCEL_ELEMENT int16_t
#define UACCEL_FN(name) name##_s16
#include "uaccel_svdf_body.h"

#endif
