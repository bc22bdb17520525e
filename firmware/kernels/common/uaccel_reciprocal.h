/* Division where only multiplication is cheap: what softmax needs once a row. */
#ifndef UACCEL_RECIPROCAL_H
#define UACCEL_RECIPROCAL_H

#include "uaccel_fixedpoint.h"

/* x * 2^exponent, saturated. */
UACCEL_KERNEL int32_t uaccel_shift_left_saturating(int32_t x, int32_t exponent)
{
    const int32_t limit = INT32_MAX >> exponent;
    return x > limit ? INT32_MAX : (x < -limit - 1 ? INT32_MIN : uaccel_shift_left(x, exponent));
}

/* 2^62 / x for x of 2^31 and above, saturated: three steps of Newton's division on numbers below 4, 29 bits after
 * the point. The last bits are the reference's, so the order and the rounding of every step count. */
UACCEL_KERNEL int32_t uaccel_reciprocal(uint32_t x)
{
    const int32_t half = (int32_t)(x >> 1);
    int32_t estimate = 1515870810 + uaccel_high_mul(half, -1010580540); /* 48/17 - 32/17 * half */
    for (int step = 0; step < 3; ++step) {
        const int32_t error = (INT32_C(1) << 29) - uaccel_high_mul(half, estimate);
        estimate += uaccel_shift_left_saturating(uaccel_high_mul(estimate, error), 2);
    }
    return uaccel_shift_left_saturating(estimate, 1);
}

#endif
