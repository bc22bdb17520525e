/* Means and maxima of floats over windows, four channels at a time: NHWC.
 *
 * Padded elements take no part, or count as zero in a mean. */
#ifndef UACCEL_POOL_FLOAT_H
#define UACCEL_POOL_FLOAT_H

#include <float.h>
#include <math.h>

#include "uaccel_float.h"

struct uaccel_pool_float {
    uaccel_index batch, in_height, in_width, channels, out_height, out_width;
    uaccel_index window_height, window_width, stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t divisor; /* of each mean; 0: as many elements as there are. Not 0: maxima are finite */
};

/* The taps of a window inside of the input, how far they are from each other, and what no maximum is below. */
struct uaccel_pool_float_taps {
    uaccel_index rows, columns, row_step, column_step;
    float least;
};

UACCEL_KERNEL float uaccel_pool_float_plus(float sum, float value)
{
    sum += value;
    UACCEL_FLOAT_ALONE(sum);
    return sum;
}

UACCEL_SHARED void uaccel_pool_float_sums(const struct uaccel_pool_float_taps *taps, const float *restrict input,
                                          float *restrict sums)
{
    float sum0 = 0, sum1 = 0, sum2 = 0, sum3 = 0;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            sum0 = uaccel_pool_float_plus(sum0, tap[0]);
            sum1 = uaccel_pool_float_plus(sum1, tap[1]);
            sum2 = uaccel_pool_float_plus(sum2, tap[2]);
            sum3 = uaccel_pool_float_plus(sum3, tap[3]);
            tap += taps->column_step;
        }
        input += taps->row_step;
    }
    sums[0] = sum0;
    sums[1] = sum1;
    sums[2] = sum2;
    sums[3] = sum3;
}

UACCEL_SHARED float uaccel_pool_float_sum(const struct uaccel_pool_float_taps *taps, const float *restrict input)
{
    float sum = 0;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            sum = uaccel_pool_float_plus(sum, *tap);
            tap += taps->column_step;
        }
        input += taps->row_step;
    }
    return sum;
}

/* The later of two wins unless the first is larger, so with NaN. */
UACCEL_KERNEL float uaccel_pool_float_larger(float first, float second)
{
    UACCEL_FLOAT_ALONE(first);
    return first > second ? first : second;
}

UACCEL_SHARED void uaccel_pool_float_maxima(const struct uaccel_pool_float_taps *taps, const float *restrict input,
                                            float *restrict largest)
{
    float largest0 = taps->least, largest1 = largest0, largest2 = largest0, largest3 = largest0;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            largest0 = uaccel_pool_float_larger(largest0, tap[0]);
            largest1 = uaccel_pool_float_larger(largest1, tap[1]);
            largest2 = uaccel_pool_float_larger(largest2, tap[2]);
            largest3 = uaccel_pool_float_larger(largest3, tap[3]);
            tap += taps->column_step;
        }
        input += taps->row_step;
    }
    largest[0] = largest0;
    largest[1] = largest1;
    largest[2] = largest2;
    largest[3] = largest3;
}

UACCEL_SHARED float uaccel_pool_float_maximum(const struct uaccel_pool_float_taps *taps, const float *restrict input)
{
    float largest = taps->least;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            largest = uaccel_pool_float_larger(largest, *tap);
            tap += taps->column_step;
        }
        input += taps->row_step;
    }
    return largest;
}

/* The first element of the window of an output pixel, channel 0. */
UACCEL_KERNEL const float *uaccel_pool_float_window(const struct uaccel_pool_float *p, const float *input,
                                                    uaccel_index y, uaccel_index x,
                                                    struct uaccel_pool_float_taps *taps)
{
    const uaccel_index top = y * p->stride_height - p->pad_top, left = x * p->stride_width - p->pad_left;
    const uaccel_index row = top + uaccel_float_skipped(top, p->dilation_height) * p->dilation_height;
    const uaccel_index column = left + uaccel_float_skipped(left, p->dilation_width) * p->dilation_width;
    taps->rows = uaccel_float_inside(top, p->dilation_height, p->window_height, p->in_height);
    taps->columns = uaccel_float_inside(left, p->dilation_width, p->window_width, p->in_width);
    taps->row_step = p->dilation_height * p->in_width * p->channels;
    taps->column_step = p->dilation_width * p->channels;
    taps->least = p->divisor != 0 ? -FLT_MAX : -INFINITY;
    return taps->rows > 0 && taps->columns > 0 ? input + (row * p->in_width + column) * p->channels : input;
}

UACCEL_KERNEL void uaccel_average_pool_float(const struct uaccel_pool_float *p, const float *input, float *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < p->out_height * p->out_width; ++pixel) {
            struct uaccel_pool_float_taps taps;
            const float *const window =
                uaccel_pool_float_window(p, input, pixel / p->out_width, pixel % p->out_width, &taps);
            const uaccel_index there = taps.rows * taps.columns > 0 ? taps.rows * taps.columns : 1;
            const float count = (float)(p->divisor > 0 ? p->divisor : there);
            uaccel_index c = 0;
            for (; c + 4 <= p->channels; c += 4) {
                float sums[4];
                uaccel_pool_float_sums(&taps, window + c, sums);
                for (uaccel_index i = 0; i < 4; ++i) {
                    float mean = sums[i] / count;
                    UACCEL_FLOAT_ALONE(mean);
                    *output++ = mean;
                }
            }
            for (; c < p->channels; ++c) {
                *output++ = uaccel_pool_float_sum(&taps, window + c) / count;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

UACCEL_KERNEL void uaccel_max_pool_float(const struct uaccel_pool_float *p, const float *input, float *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < p->out_height * p->out_width; ++pixel) {
            struct uaccel_pool_float_taps taps;
            const float *const window =
                uaccel_pool_float_window(p, input, pixel / p->out_width, pixel % p->out_width, &taps);
            uaccel_index c = 0;
            for (; c + 4 <= p->channels; c += 4) {
                uaccel_pool_float_maxima(&taps, window + c, output);
                output += 4;
            }
            for (; c < p->channels; ++c) {
                *output++ = uaccel_pool_float_maximum(&taps, window + c);
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
