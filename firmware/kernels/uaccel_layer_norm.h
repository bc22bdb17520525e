/* Layer, group and instance normalisation of 8-bit rows, the real result rounded once, portable C.
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

UACCEL_KERNEL struct uaccel_layer_norm_row uaccel_layer_norm_row(const struct uaccel_layer_norm *p,
                                                                 const int8_t *input)
{
    struct uaccel_layer_norm_row row = {0, 0, p->right};
    int32_t squares = 0;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        row.sum += input[i];
        squares += input[i] * input[i];
    }
    const int64_t spread = (int64_t)p->depth * squares - (int64_t)row.sum * row.sum;
    int64_t variance = spread * (INT64_C(1) << p->fraction) + p->epsilon;
    variance = variance < 1 ? 1 : variance;
    for (; variance < INT64_C(1) << 60; variance <<= 2) {
        --row.right;
    }
    row.right = row.right < 0 ? 0 : row.right; /* then all distances are zero */
    row.root = uaccel_layer_norm_root(variance >> 31);
    return row;
}

/* The output may overwrite the input: a row is read whole before its first element is written. */
UACCEL_KERNEL void uaccel_layer_norm_s8(const struct uaccel_layer_norm *p, const int8_t *input, const int32_t *gamma,
                                        const int32_t *beta, int8_t *output)
{
    uaccel_index first = 0, group = 0;
    for (uaccel_index r = 0; r < p->rows; ++r) {
        const struct uaccel_layer_norm_row row = uaccel_layer_norm_row(p, input);
        for (uaccel_index i = 0; i < p->depth; ++i) {
            const int64_t normal = ((p->depth * input[i] - row.sum) * row.root) >> row.right;
            const uaccel_index channel = first + i / p->inner;
            const int64_t total = normal * gamma[channel] + beta[channel] * (INT64_C(1) << p->beta_shift);
            const int64_t rounded = uaccel_round_half_even(total, p->shift, 0);
            output[i] = (int8_t)uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max,
                                                        p->shift > 32);
        }
        first += p->depth / p->inner;
        if (++group == p->groups) {
            first = group = 0;
        }
        input += p->depth;
        output += p->depth;
    }
}

#endif
