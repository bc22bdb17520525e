/* The output stage: exactly TFLite's rounding, and defined for every input. */
#include "matrix8_model.h"

/* The 32-bit pattern as a signed number. */
static int32_t as_signed(uint32_t bits)
{
    return bits <= INT32_MAX ? (int32_t)bits : (int32_t)((int64_t)bits - (INT64_C(1) << 32));
}

/* round(a * b / 2^31), halves upwards. */
static int32_t high_product(int32_t a, int32_t b)
{
    if (a == INT32_MIN && b == INT32_MIN) {
        return INT32_MAX;
    }
    const int64_t rounded = (int64_t)a * b + (INT64_C(1) << 30);
    const int64_t down = rounded < 0 && rounded % (INT64_C(1) << 31) != 0 ? 1 : 0;
    return (int32_t)(rounded / (INT64_C(1) << 31) - down);
}

/* round(x / 2^exponent), halves away from zero; exponent in 0..31. */
static int32_t divided_by_power(int32_t x, uint32_t exponent)
{
    const int64_t half = exponent == 0 ? 0 : INT64_C(1) << (exponent - 1u);
    const int64_t magnitude = x < 0 ? -(int64_t)x : x;
    const int64_t rounded = (magnitude + half) >> exponent;
    return (int32_t)(x < 0 ? -rounded : rounded);
}

int8_t matrix8_model_scaled(uint32_t sum, int32_t multiplier, int32_t shift, const struct matrix8_output *output)
{
    const uint32_t left = shift > 0 ? (uint32_t)shift : 0;
    const uint32_t right = shift > 0 ? 0 : (uint32_t)-shift;
    const int32_t scaled = divided_by_power(high_product(as_signed(sum << left), multiplier), right);
    const int32_t moved = as_signed((uint32_t)scaled + output->zero_point);
    const int32_t least = as_signed(output->clamp_min), greatest = as_signed(output->clamp_max);
    const int32_t clamped = moved < least ? least : (moved > greatest ? greatest : moved);
    return (int8_t)clamped;
}
