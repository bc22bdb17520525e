/* Means and maxima over windows with any padding and dilation, NHWC, portable C. A mean is rounded once. */
#ifndef UACCEL_WINDOW_H
#define UACCEL_WINDOW_H

#include "uaccel_half_even.h"

struct uaccel_window {
    uaccel_index batch, in_height, in_width;
    uaccel_index out_height, out_width, channels;
    uaccel_index window_height, window_width;
    uaccel_index stride_height, stride_width;
    uaccel_index dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
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
    const uaccel_index start = y * p->stride_height - p->pad_top;
    return uaccel_window_taps(start, p->window_height, p->dilation_height, -above, p->in_height + below);
}

UACCEL_KERNEL struct uaccel_window_taps uaccel_window_columns(const struct uaccel_window *p, uaccel_index x,
                                                              uaccel_index before, uaccel_index behind)
{
    const uaccel_index start = x * p->stride_width - p->pad_left;
    return uaccel_window_taps(start, p->window_width, p->dilation_width, -before, p->in_width + behind);
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

#define UACCEL_BODY "uaccel_window_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
