/* Layer, group and instance normalisation of rows, the real result rounded once, portable C.
 *
 * A row's sum and its sum of squares are exact, and so are distances from the mean and the variance, both times the
 * number of elements. One inverse square root a row, by Newton's method. */
#ifndef UACCEL_LAYER_NORM_H
#define UACCEL_LAYER_NORM_H

#include "uaccel_half_even.h"

struct uaccel_layer_norm {
    uaccel_index rows, depth;
    int64_t epsilon;  /* beside depth^2 times the variance, with as many bits after the point */
    int32_t fraction; /* those bits */
    int32_t right;    /* brings a distance times an inverse root to the point of gamma's factor */
    int32_t shift;    /* bits after the point of the result */
    int32_t beta_shift;
    int32_t output_zero_point, clamp_min, clamp_max;
    uaccel_index groups; /* rows after which gamma and beta begin anew */
    uaccel_index inner;  /* elements side by side with one of each */
};

struct uaccel_layer_norm_row {
    int32_t sum;
    int64_t root; /* 1 / sqrt(variance) from 1 to 2, 30 bits after the point */
    int32_t right;
};

/* 1 / sqrt(w / 2^31) for w from a quarter to one, from a straight line by five steps of Newton's method. */
UACCEL_KERNEL int64_t uaccel_layer_norm_root(int64_t w)
{
    int64_t x = INT64_C(0x95555555) - ((w * 1431655765) >> 31); /* 7/3 - 4/3 w */
    for (int step = 0; step < 5; ++step) {
        const int64_t square = (x * x) >> 30;
        x = (x * ((INT64_C(3) << 30) - ((w * square) >> 31))) >> 31;
    }
    return x;
}

#define UACCEL_BODY "uaccel_layer_norm_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
