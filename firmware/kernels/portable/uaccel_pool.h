/* Means and maxima over windows, NHWC, portable C. */
#ifndef UACCEL_POOL_H
#define UACCEL_POOL_H

#include "uaccel_half_even.h"

/* Average and maximum over windows, NHWC. Padded elements take no part. */
struct uaccel_pool {
    struct uaccel_geometry geo;
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
 * `pixels` is the first of height * width, none of them padding, in rows of p->geo.in_width. */
#define UACCEL_POOL(name, element, each)                                                                           \
    UACCEL_KERNEL void name(const struct uaccel_pool *p, const element *input, element *output)                    \
    {                                                                                                              \
        const struct uaccel_geometry *const geo = &p->geo;                                                         \
        for (uaccel_index n = 0; n < geo->batch; ++n) {                                                            \
            for (uaccel_index y = 0; y < geo->out_height; ++y) {                                                   \
                const struct uaccel_pool_span rows =                                                               \
                    uaccel_pool_span(y * geo->stride_height - geo->pad_top, geo->kernel_height, geo->in_height);   \
                for (uaccel_index x = 0; x < geo->out_width; ++x) {                                                \
                    const struct uaccel_pool_span columns =                                                        \
                        uaccel_pool_span(x * geo->stride_width - geo->pad_left, geo->kernel_width, geo->in_width); \
                    each(p, input + (rows.first * geo->in_width + columns.first) * geo->in_channels,               \
                         rows.last - rows.first, columns.last - columns.first, output);                            \
                    output += geo->in_channels;                                                                    \
                }                                                                                                  \
            }                                                                                                      \
            input += geo->in_height * geo->in_width * geo->in_channels;                                            \
        }                                                                                                          \
    }

/* Means and maxima over windows with any padding and dilation, NHWC. A mean is rounded once. */
struct uaccel_window {
    struct uaccel_geometry geo;
    int32_t clamp_min, clamp_max;
    /* for means alone: */
    uaccel_index counted_top, counted_left, counted_bottom, counted_right; /* outside the input, as zeros */
    int32_t least; /* elements that a window counts: the first multiplier is for that many */
    int32_t input_zero_point, output_zero_point;
    int32_t shift;
    int64_t tolerance;
};

/* Those taps of a window along one axis, first..last-1, that lie from `low` to before `high`; first = last: none. */
struct uaccel_window_taps {
    uaccel_index first, last;
};

UACCEL_KERNEL uaccel_index uaccel_window_steps(uaccel_index distance, uaccel_index dilation)
{
    return distance <= 0 ? 0 : (distance + dilation - 1) / dilation;
}

UACCEL_KERNEL struct uaccel_window_taps uaccel_window_taps(uaccel_index start, uaccel_index size, uaccel_index dilation,
                                                           uaccel_index low, uaccel_index high)
{
    const uaccel_index before = uaccel_window_steps(low - start, dilation);
    const uaccel_index until = uaccel_window_steps(high - start, dilation);
    struct uaccel_window_taps taps;
    taps.first = before < size ? before : size;
    taps.last = until < size ? until : size;
    return taps;
}

UACCEL_KERNEL struct uaccel_window_taps uaccel_window_rows(const struct uaccel_window *p, uaccel_index y,
                                                           uaccel_index above, uaccel_index below)
{
    const uaccel_index start = y * p->geo.stride_height - p->geo.pad_top;
    return uaccel_window_taps(start, p->geo.kernel_height, p->geo.dilation_height, -above, p->geo.in_height + below);
}

UACCEL_KERNEL struct uaccel_window_taps uaccel_window_columns(const struct uaccel_window *p, uaccel_index x,
                                                              uaccel_index before, uaccel_index behind)
{
    const uaccel_index start = x * p->geo.stride_width - p->geo.pad_left;
    return uaccel_window_taps(start, p->geo.kernel_width, p->geo.dilation_width, -before, p->geo.in_width + behind);
}

/* How many elements a window counts. */
UACCEL_KERNEL int32_t uaccel_window_count(const struct uaccel_window *p, uaccel_index y, uaccel_index x)
{
    const struct uaccel_window_taps rows = uaccel_window_rows(p, y, p->counted_top, p->counted_bottom);
    const struct uaccel_window_taps columns = uaccel_window_columns(p, x, p->counted_left, p->counted_right);
    return (rows.last - rows.first) * (columns.last - columns.first);
}

UACCEL_KERNEL int32_t uaccel_window_finish(const struct uaccel_window *p, int32_t sum, int32_t multiplier)
{
    const int64_t scaled = (int64_t)sum * multiplier;
    const int64_t rounded = uaccel_round_half_even(scaled, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 32);
}

#define UACCEL_BODY "uaccel_pool_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
