/* Sums of all elements so far along an axis, 8-bit elements, portable C. */
#ifndef UACCEL_CUMSUM_H
#define UACCEL_CUMSUM_H

#include "uaccel_fixedpoint.h"

struct uaccel_cumsum {
    uaccel_index outer, extent, inner;
    int32_t exclusive, reverse; /* 1: without the element itself; from the end */
    int32_t left_shift;         /* extra bits of a sum */
    int32_t input_zero_point, output_zero_point;
    int32_t multiplier, shift;
    int32_t clamp_min, clamp_max;
};

/* The output may overwrite the input: each element is read just before its place is written. */
UACCEL_KERNEL void uaccel_cumsum_s8(const struct uaccel_cumsum *p, const int8_t *input, int8_t *output)
{
    const uaccel_index step = p->reverse != 0 ? -p->inner : p->inner;
    for (uaccel_index line = 0; line < p->outer * p->inner; ++line) {
        const uaccel_index start = line / p->inner * p->extent * p->inner + line % p->inner;
        uaccel_index at = p->reverse != 0 ? start + (p->extent - 1) * p->inner : start;
        int32_t sum = -p->input_zero_point; /* as the reference begins */
        for (uaccel_index i = 0; i < p->extent; ++i) {
            const int32_t more = sum + (input[at] - p->input_zero_point);
            const int32_t raised = uaccel_shift_left(p->exclusive != 0 ? sum : more, p->left_shift);
            const int32_t scaled = uaccel_requantise(raised, p->multiplier, p->shift);
            output[at] = (int8_t)uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
            sum = more;
            at += step;
        }
    }
}

#endif
