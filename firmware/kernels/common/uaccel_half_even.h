/* The real result, rounded once, half to even: what models that come from elsewhere than TensorFlow Lite mean. */
#ifndef UACCEL_HALF_EVEN_H
#define UACCEL_HALF_EVEN_H

#include "uaccel_fixedpoint.h"

/* value / 2^shift; within `tolerance` of the middle between two integers the even one is taken. shift in 1..62. */
UACCEL_KERNEL int64_t uaccel_round_half_even(int64_t value, int32_t shift, int64_t tolerance)
{
    const int64_t one = INT64_C(1) << shift;
    const int64_t biased = value + (one >> 1) + tolerance;
    const int64_t above = biased >> shift;
    return (biased & (one - 1)) <= 2 * tolerance ? above - (above & 1) : above;
}

/* Add the zero point and clamp. What is `narrow` fits 30 bits and a sign in any case, and is compared in 32. */
UACCEL_KERNEL int32_t uaccel_finish_half_even(int64_t rounded, int32_t zero_point, int32_t low, int32_t high,
                                              bool narrow)
{
    if (narrow) {
        return uaccel_clamp((int32_t)rounded + zero_point, low, high);
    }
    return (int32_t)(rounded < low - zero_point ? low : (rounded > high - zero_point ? high : rounded + zero_point));
}

#endif
