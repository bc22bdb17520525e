/* Average and maximum over windows, NHWC, portable C. Padded elements take no part. */
#ifndef UACCEL_POOL_H
#define UACCEL_POOL_H

#include "uaccel_fixedpoint.h"

struct uaccel_pool {
    uaccel_index batch, in_height, in_width;
    uaccel_index out_height, out_width, channels;
    uaccel_index window_height, window_width;
    uaccel_index stride_height, stride_width;
    uaccel_index pad_top, pad_left;
    int32_t clamp_min, clamp_max;
};

/* The part first..last-1 of an axis that a window covers. Never empty. */
struct uaccel_pool_span {
    uaccel_index first, last;
};

UACCEL_KERNEL struct uaccel_pool_span uaccel_pool_span(uaccel_index start, uaccel_index size, uaccel_index extent)
{
    struct uaccel_pool_span span;
    span.first = start < 0 ? 0 : start;
    span.last = start + size > extent ? extent : start + size;
    return span;
}

/* sum / count, halves away from zero; the sum leaves room for half the count. */
UACCEL_KERNEL int32_t uaccel_rounded_mean(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* A kernel: one window after the other. `each` gives all channels of one: void (p, pixels, height, width, output);
 * `pixels` is the first of height * width, none of them padding, in rows of p->in_width. */
#define UACCEL_POOL(name, element, each)                                                                       \
    UACCEL_KERNEL void name(const struct uaccel_pool *p, const element *input, element *output)                \
    {                                                                                                          \
        for (uaccel_index n = 0; n < p->batch; ++n) {                                                          \
            for (uaccel_index y = 0; y < p->out_height; ++y) {                                                 \
                const struct uaccel_pool_span rows =                                                           \
                    uaccel_pool_span(y * p->stride_height - p->pad_top, p->window_height, p->in_height);       \
                for (uaccel_index x = 0; x < p->out_width; ++x) {                                              \
                    const struct uaccel_pool_span columns =                                                    \
                        uaccel_pool_span(x * p->stride_width - p->pad_left, p->window_width, p->in_width);     \
                    each(p, input + (rows.first * p->in_width + columns.first) * p->channels,                  \
                         rows.last - rows.first, columns.last - columns.first, output);                        \
                    output += p->channels;                                                                     \
                }                                                                                              \
            }                                                                                                  \
            input += p->in_height * p->in_width * p->channels;                                                 \
        }                                                                                                      \
    }

#define UACCEL_BODY "uaccel_pool_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
