/* Average over windows of up to 255 pixels for Arm Helium: NHWC, int8, eight channels at a time. */
#ifndef UACCEL_POOL_HELIUM_H
#define UACCEL_POOL_HELIUM_H

#include "uaccel_helium.h"
#include "uaccel_pool.h"

/* The sums of up to eight channels under one window. Rows of the whole width are one row. */
UACCEL_KERNEL int16x8_t uaccel_pool_helium_sum(const struct uaccel_pool *p, const int8_t *channel,
                                               struct uaccel_pool_span rows, struct uaccel_pool_span columns,
                                               mve_pred16_t some)
{
    const bool whole = columns.last - columns.first == p->in_width;
    const uaccel_index width = columns.last - columns.first, height = rows.last - rows.first;
    const uaccel_index runs = whole ? 1 : height, length = whole ? width * height : width;
    const int8_t *run = channel + (rows.first * p->in_width + columns.first) * p->channels;
    int16x8_t sum = vdupq_n_s16(0);
    for (uaccel_index i = 0; i < runs; ++i) {
        const int8_t *pixel = run;
        for (uaccel_index left = length; left > 0; --left) {
            sum = vaddq_s16(sum, vldrbq_z_s16(pixel, some));
            pixel += p->channels;
        }
        run += p->in_width * p->channels;
    }
    return sum;
}

/* One window of every channel. */
UACCEL_KERNEL void uaccel_pool_helium_window(const struct uaccel_pool *p, const int8_t *input,
                                             struct uaccel_pool_span rows, struct uaccel_pool_span columns,
                                             int8_t *output)
{
    const int32_t count = (rows.last - rows.first) * (columns.last - columns.first);
    for (uaccel_index c = 0; c < p->channels; c += 8) {
        int16_t sums[8];
        const uaccel_index left = p->channels - c;
        vstrhq_s16(sums, uaccel_pool_helium_sum(p, input + c, rows, columns, vctp16q((uint32_t)left)));
        for (uaccel_index i = 0; i < 8 && i < left; ++i) {
            *output++ = (int8_t)uaccel_clamp(uaccel_rounded_mean(sums[i], count), p->clamp_min, p->clamp_max);
        }
    }
}

UACCEL_KERNEL void uaccel_average_pool_helium_s8(const struct uaccel_pool *p, const int8_t *input, int8_t *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_pool_span rows =
                uaccel_pool_span(y * p->stride_height - p->pad_top, p->window_height, p->in_height);
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_pool_span columns =
                    uaccel_pool_span(x * p->stride_width - p->pad_left, p->window_width, p->in_width);
                uaccel_pool_helium_window(p, input, rows, columns, output);
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
