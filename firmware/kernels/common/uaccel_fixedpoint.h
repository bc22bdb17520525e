/* The rounding of TensorFlow Lite's reference kernels, to the bit.
 *
 * Overflow is defined everywhere: where the reference wraps, unsigned arithmetic wraps here. */
#ifndef UACCEL_FIXEDPOINT_H
#define UACCEL_FIXEDPOINT_H

#include "uaccel_kernel.h"

/* a + b, wrapping. */
UACCEL_KERNEL int32_t uaccel_add_wrapping(int32_t a, int32_t b)
{
    return (int32_t)((uint32_t)a + (uint32_t)b);
}

UACCEL_KERNEL int64_t uaccel_add_wide(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

UACCEL_KERNEL int32_t uaccel_clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : (value > high ? high : value);
}

/* x * 2^exponent, wrapping; exponent in 0..31. */
UACCEL_KERNEL int32_t uaccel_shift_left(int32_t x, int32_t exponent)
{
    return (int32_t)((uint32_t)x << exponent);
}

/* How many zero bits precede the first one; 32 for zero. */
UACCEL_KERNEL int32_t uaccel_leading_zeros(uint32_t x)
{
#if defined(__GNUC__) && __SIZEOF_INT__ == 4
    return x == 0 ? 32 : __builtin_clz(x);
#elif defined(__GNUC__) && __SIZEOF_LONG__ == 4
    return x == 0 ? 32 : __builtin_clzl(x); /* int has 16 bits */
#else
    int32_t zeros = 0;
    for (uint32_t bit = UINT32_C(1) << 31; bit != 0 && (x & bit) == 0; bit >>= 1) {
        ++zeros;
    }
    return zeros;
#endif
}

/* round(a * b / 2^31), halves upwards; only INT32_MIN * INT32_MIN saturates. */
UACCEL_KERNEL int32_t uaccel_high_mul(int32_t a, int32_t b)
{
    const int64_t product = (int64_t)a * b;
    const int64_t rounded = (product + (INT64_C(1) << 30)) >> 31;
    return rounded > INT32_MAX ? INT32_MAX : (int32_t)rounded;
}

/* round(x / 2^exponent), halves away from zero; exponent in 0..31. */
UACCEL_KERNEL int32_t uaccel_rounding_shift_right(int32_t x, int32_t exponent)
{
    const int32_t mask = (int32_t)((UINT32_C(1) << exponent) - 1u);
    const int32_t remainder = x & mask;
    const int32_t threshold = (mask >> 1) + (x < 0 ? 1 : 0);
    return (x >> exponent) + (remainder > threshold ? 1 : 0);
}

/* acc * multiplier / 2^31 * 2^shift, rounded twice. multiplier >= 0; shift in -31..30. */
UACCEL_KERNEL int32_t uaccel_requantise(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t left = shift > 0 ? shift : 0;
    const int32_t right = shift > 0 ? 0 : -shift;
    /* multiplier >= 0, so that the product cannot reach the one value that saturates */
    const int64_t product = (int64_t)uaccel_shift_left(acc, left) * multiplier;
    const int32_t high = (int32_t)((product + (INT64_C(1) << 30)) >> 31);
    return uaccel_rounding_shift_right(high, right);
}

/* The same of a value with `left_shift` more bits: one of two inputs on a scale that they share. */
UACCEL_KERNEL int32_t uaccel_raised(int32_t value, int32_t left_shift, int32_t multiplier, int32_t shift)
{
    return uaccel_requantise(uaccel_shift_left(value, left_shift), multiplier, shift);
}

/* A result with its zero point, wrapping, and within bounds. */
UACCEL_KERNEL int32_t uaccel_finish(int32_t scaled, int32_t zero_point, int32_t low, int32_t high)
{
    return uaccel_clamp(uaccel_add_wrapping(scaled, zero_point), low, high);
}

/* The form for 64-bit accumulators of 16-bit activations: a 16-bit multiplier, rounded once. */
UACCEL_KERNEL int32_t uaccel_requantise_wide(int64_t acc, int32_t multiplier, int32_t shift)
{
    const int64_t reduced = multiplier < 0x7FFF0000 ? ((int64_t)multiplier + (INT32_C(1) << 15)) >> 16 : 0x7FFF;
    const int32_t total = 15 - shift;
    return (int32_t)((acc * reduced + (INT64_C(1) << (total - 1))) >> total);
}

#endif
