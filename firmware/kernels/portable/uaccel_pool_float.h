/* Means and maxima of floats over windows, four channels at a time: NHWC.
 *
 * Padded elements take no part, or count as zero in a mean. */
#ifndef UACCEL_POOL_FLOAT_H
#define UACCEL_POOL_FLOAT_H

#include <float.h>
#include <math.h>

#include "uaccel_float.h"

struct uaccel_pool_float {
    struct uaccel_geometry geo;
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

/* The later of two wins unless the first is larger, so with NaN. */
UACCEL_KERNEL float uaccel_pool_float_larger(float first, float second)
{
    UACCEL_FLOAT_ALONE(first);
    return first > second ? first : second;
}

#define UACCEL_FN(name) name##_sums
#define UACCEL_POOL_FLOAT_BEGIN 0
#define UACCEL_POOL_FLOAT_NEXT uaccel_pool_float_plus
#include "uaccel_pool_float_body.h"

#define UACCEL_FN(name) name##_maxima
#define UACCEL_POOL_FLOAT_BEGIN taps->least
#define UACCEL_POOL_FLOAT_NEXT uaccel_pool_float_larger
#include "uaccel_pool_float_body.h"

/* The first element of the window of an output pixel, channel 0. */
UACCEL_KERNEL const float *uaccel_pool_float_window(const struct uaccel_pool_float *p, const float *input,
                                                    uaccel_index y, uaccel_index x,
                                                    struct uaccel_pool_float_taps *taps)
{
    const uaccel_index top = y * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = x * p->geo.stride_width - p->geo.pad_left;
    const uaccel_index row = top + uaccel_float_skipped(top, p->geo.dilation_height) * p->geo.dilation_height;
    const uaccel_index column = left + uaccel_float_skipped(left, p->geo.dilation_width) * p->geo.dilation_width;
    taps->rows = uaccel_float_inside(top, p->geo.dilation_height, p->geo.kernel_height, p->geo.in_height);
    taps->columns = uaccel_float_inside(left, p->geo.dilation_width, p->geo.kernel_width, p->geo.in_width);
    taps->row_step = p->geo.dilation_height * p->geo.in_width * p->geo.in_channels;
    taps->column_step = p->geo.dilation_width * p->geo.in_channels;
    taps->least = p->divisor != 0 ? -FLT_MAX : -INFINITY;
    return taps->rows > 0 && taps->columns > 0 ? input + (row * p->geo.in_width + column) * p->geo.in_channels : input;
}

/* Every window; `average` chooses between the two, and folds. */
UACCEL_KERNEL void uaccel_pool_float(const struct uaccel_pool_float *p, const float *input, float *output, bool average)
{
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index pixel = 0; pixel < p->geo.out_height * p->geo.out_width; ++pixel) {
            struct uaccel_pool_float_taps taps;
            const float *const window =
                uaccel_pool_float_window(p, input, pixel / p->geo.out_width, pixel % p->geo.out_width, &taps);
            const uaccel_index there = taps.rows * taps.columns > 0 ? taps.rows * taps.columns : 1;
            const float count = (float)(p->divisor > 0 ? p->divisor : there);
            uaccel_index c = 0;
            for (; c + 4 <= p->geo.in_channels; c += 4) {
                float sums[4];
                if (average) {
                    uaccel_pool_float_four_sums(&taps, window + c, sums);
                    for (uaccel_index i = 0; i < 4; ++i) {
                        float mean = sums[i] / count;
                        UACCEL_FLOAT_ALONE(mean);
                        output[i] = mean;
                    }
                } else {
                    uaccel_pool_float_four_maxima(&taps, window + c, output);
                }
                output += 4;
            }
            for (; c < p->geo.in_channels; ++c) {
                *output++ = average ? uaccel_pool_float_one_sums(&taps, window + c) / count
                                    : uaccel_pool_float_one_maxima(&taps, window + c);
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

UACCEL_KERNEL void uaccel_average_pool_float(const struct uaccel_pool_float *p, const float *input, float *output)
{
    uaccel_pool_float(p, input, output, true);
}

UACCEL_KERNEL void uaccel_max_pool_float(const struct uaccel_pool_float *p, const float *input, float *output)
{
    uaccel_pool_float(p, input, output, false);
}

#endif
