/* Sums, means and extremes along any axes, running sums, and where extremes are, portable C. */
#ifndef UACCEL_REDUCE_H
#define UACCEL_REDUCE_H

#include "uaccel_float32.h"
#include "uaccel_half_even.h"

/* A kernel over a structure of five extents: neighbouring axes are joined ahead of time, so that every reduction is
 * over the second and the fourth. `begin` is what it begins with, of the first element; `next` what becomes of it
 * with another element; `finish` the output element, in range, of (p, int32_t). */
#define UACCEL_REDUCTION(name, structure, element, begin, next, finish)                               \
    UACCEL_KERNEL void name(const struct structure *p, const element *input, element *output)         \
    {                                                                                                 \
        for (uaccel_index o = 0; o < p->outer; ++o) {                                                 \
            for (uaccel_index m = 0; m < p->middle; ++m) {                                            \
                const element *row = input + m * p->reduced_inner * p->inner;                         \
                for (uaccel_index i = 0; i < p->inner; ++i) {                                         \
                    int32_t result = begin(row[i]);                                                   \
                    for (uaccel_index j = 0; j < p->reduced_outer; ++j) {                             \
                        const element *first = row + i + j * p->middle * p->reduced_inner * p->inner; \
                        for (uaccel_index k = 0; k < p->reduced_inner; ++k) {                         \
                            result = next(result, first[k * p->inner]);                               \
                        }                                                                             \
                    }                                                                                 \
                    *output++ = (element)finish(p, result);                                           \
                }                                                                                     \
            }                                                                                         \
            input += p->reduced_outer * p->middle * p->reduced_inner * p->inner;                      \
        }                                                                                             \
    }

/* Sums fit 32 bits: whoever makes the parameters has made sure of that. */
#define UACCEL_BEGIN_SUM(element) 0
#define UACCEL_NEXT_SUM(sum, element) ((sum) + (element))

/* Sum, mean, maximum and minimum along any axes. */
struct uaccel_reduce {
    uaccel_index outer, reduced_outer, middle, reduced_inner, inner;
    /* for sums alone: */
    int32_t offset; /* what the input's zero point adds up to, negated */
    int32_t multiplier, shift;
    int32_t output_zero_point;
};

#define UACCEL_BEGIN_FIRST(element) (element)
#define UACCEL_NEXT_MAX(most, element) ((element) > (most) ? (element) : (most))
#define UACCEL_NEXT_MIN(least, element) ((element) < (least) ? (element) : (least))
#define UACCEL_FINISH_AS_IT_IS(p, value) (value)

/* Sums and means along any axes, the real result rounded once. */
struct uaccel_scaled_sum {
    uaccel_index outer, reduced_outer, middle, reduced_inner, inner;
    int32_t offset; /* what the input's zero point adds up to, negated */
    int32_t multiplier, shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_scaled_sum_finish(const struct uaccel_scaled_sum *p, int32_t sum)
{
    const int64_t scaled = (int64_t)(sum + p->offset) * p->multiplier;
    const int64_t rounded = uaccel_round_half_even(scaled, p->shift, p->tolerance);
    return uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, p->shift > 32);
}

#define UACCEL_SCALED_SUM(name, element) \
    UACCEL_REDUCTION(name, uaccel_scaled_sum, element, UACCEL_BEGIN_SUM, UACCEL_NEXT_SUM, uaccel_scaled_sum_finish)
UACCEL_SCALED_SUM(uaccel_scaled_sum_s8, int8_t)
UACCEL_SCALED_SUM(uaccel_scaled_sum_s16, int16_t)
#undef UACCEL_SCALED_SUM

/* Sums of all elements so far along an axis, 8-bit elements. */
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

/* Where along an axis the largest or smallest element is. Of equal ones the first. */
struct uaccel_arg_extreme {
    uaccel_index outer, extent, inner; /* elements before, along and behind the axis */
    int32_t wide;                      /* 1: the positions are int64_t, 0: int32_t */
};

#define UACCEL_BODY "uaccel_reduce_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
