/* Resizing of images, NHWC, portable C. */
#ifndef UACCEL_RESIZE_H
#define UACCEL_RESIZE_H

#include "uaccel_half_even.h"

/* Resizing to the nearest pixel, NHWC, any element type. */
struct uaccel_resize_nearest {
    uaccel_index batch, in_height, in_width;
    uaccel_index out_height, out_width;
    uaccel_index pixel_bytes; /* channels * bytes of an element */
};

/* rows[y], columns[x]: which input pixel an output pixel shows. */
UACCEL_KERNEL void uaccel_resize_nearest(const struct uaccel_resize_nearest *p, const void *input,
                                         const int16_t *rows, const int16_t *columns, void *output)
{
    const uint8_t *image = input;
    uint8_t *pixel = output;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const uint8_t *row = image + rows[y] * p->in_width * p->pixel_bytes;
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                memcpy(pixel, row + columns[x] * p->pixel_bytes, (size_t)p->pixel_bytes);
                pixel += p->pixel_bytes;
            }
        }
        image += p->in_height * p->in_width * p->pixel_bytes;
    }
}

/* Bilinear resizing of 8-bit images, NHWC, in fixed point with 10 bits after the point. */
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
    span.lower = uaccel_clamp(position >> 10, 0, extent - 1);
    span.upper = uaccel_clamp((position + 1023) >> 10, 0, extent - 1);
    span.fraction = position - span.lower * 1024;
    return span;
}

/* Halves away from zero: below zero the shift rounds them down if one less is added. */
UACCEL_KERNEL int8_t uaccel_resize_round(int32_t sum)
{
    return (int8_t)((sum + (INT32_C(1) << 19) + (sum >> 31)) >> 20);
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

/* A column of the two input rows under an output row: what both rows add to each channel. */
UACCEL_KERNEL void uaccel_resize_column(const int8_t *above, const int8_t *below, int32_t fraction,
                                        uaccel_index channels, int32_t *sums)
{
    for (uaccel_index c = 0; c < channels; ++c) {
        sums[c] = above[c] * (1024 - fraction) + below[c] * fraction;
    }
}

/* The same for images that become wider: the two columns around an output pixel stay in `scratch`, 8 bytes a channel,
 * and serve the next pixels as well. */
UACCEL_KERNEL void uaccel_resize_bilinear_wider_s8(const struct uaccel_resize_bilinear *p, const int8_t *input,
                                                   int8_t *output, void *scratch)
{
    int32_t *left = scratch, *right = left + p->channels;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_resize_span v = uaccel_resize_span(y * p->step_y + p->start_y, p->in_height);
            const int8_t *above = input + v.lower * p->in_width * p->channels;
            const int8_t *below = input + v.upper * p->in_width * p->channels;
            uaccel_index at_left = -1, at_right = -1;
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_resize_span h = uaccel_resize_span(x * p->step_x + p->start_x, p->in_width);
                const int32_t *upper = left;
                if (h.lower != at_left) {
                    int32_t *const free_column = left;
                    left = right;
                    right = free_column;
                    if (h.lower != at_right) {
                        const uaccel_index at = h.lower * p->channels;
                        uaccel_resize_column(above + at, below + at, v.fraction, p->channels, left);
                    }
                    at_left = h.lower;
                    at_right = -1;
                    upper = left;
                }
                if (h.upper != h.lower) {
                    if (h.upper != at_right) {
                        const uaccel_index at = h.upper * p->channels;
                        uaccel_resize_column(above + at, below + at, v.fraction, p->channels, right);
                        at_right = h.upper;
                    }
                    upper = right;
                }
                for (uaccel_index c = 0; c < p->channels; ++c) {
                    *output++ = uaccel_resize_round(left[c] * (1024 - h.fraction) + upper[c] * h.fraction);
                }
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

/* Bilinear resizing by exact positions, NHWC, the real result rounded once. */
struct uaccel_resize_once {
    uaccel_index batch, in_height, in_width;
    uaccel_index out_height, out_width, channels;
    int32_t parts_y, parts_x; /* of a pixel */
    int32_t input_zero_point;
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

#define UACCEL_BODY "uaccel_resize_once_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
