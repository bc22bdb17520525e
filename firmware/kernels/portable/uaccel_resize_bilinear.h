/* Bilinear resizing of 8-bit images, NHWC, in fixed point with 10 bits after the point, portable C. */
#ifndef UACCEL_RESIZE_BILINEAR_H
#define UACCEL_RESIZE_BILINEAR_H

#include "uaccel_fixedpoint.h"

struct uaccel_resize_bilinear {
    uaccel_index batch, in_height, in_width;
    uaccel_index out_height, out_width, channels;
    int32_t step_y, step_x;   /* from one output pixel to the next, in the input's pixels */
    int32_t start_y, start_x; /* where output pixel 0 lies */
};

/* The input pixels on both sides of an output pixel along one axis, and the weight of the upper one. */
struct uaccel_resize_span {
    uaccel_index lower, upper;
    int32_t fraction;
};

/* A position before the first pixel or behind the last has that pixel on both sides; then the weights, one of them
 * below 0, still add up to 1. */
UACCEL_KERNEL struct uaccel_resize_span uaccel_resize_span(int32_t position, uaccel_index extent)
{
    struct uaccel_resize_span span;
    span.lower = uaccel_clamp(position / 1024, 0, extent - 1);
    span.upper = uaccel_clamp((position + 1023) / 1024, 0, extent - 1);
    span.fraction = position - span.lower * 1024;
    return span;
}

UACCEL_KERNEL int8_t uaccel_resize_round(int32_t sum)
{
    const int32_t half = INT32_C(1) << 19;
    return (int8_t)((sum > 0 ? sum + half : sum - half) / (INT32_C(1) << 20));
}

UACCEL_KERNEL void uaccel_resize_bilinear_s8(const struct uaccel_resize_bilinear *p, const int8_t *input,
                                             int8_t *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_resize_span v = uaccel_resize_span(y * p->step_y + p->start_y, p->in_height);
            const int8_t *above = input + v.lower * p->in_width * p->channels;
            const int8_t *below = input + v.upper * p->in_width * p->channels;
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_resize_span h = uaccel_resize_span(x * p->step_x + p->start_x, p->in_width);
                const uaccel_index left = h.lower * p->channels, right = h.upper * p->channels;
                const int32_t above_left = (1024 - v.fraction) * (1024 - h.fraction);
                const int32_t above_right = (1024 - v.fraction) * h.fraction;
                const int32_t below_left = v.fraction * (1024 - h.fraction);
                const int32_t below_right = v.fraction * h.fraction;
                for (uaccel_index c = 0; c < p->channels; ++c) {
                    *output++ = uaccel_resize_round(above[left + c] * above_left + above[right + c] * above_right +
                                                    below[left + c] * below_left + below[right + c] * below_right);
                }
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
