/* The output stage: TFLite's rounding or single precision's, to the bit, and defined for every input. */
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

static int32_t scaled_twice(uint32_t sum, int32_t multiplier, int32_t shift)
{
    const uint32_t left = shift > 0 ? (uint32_t)shift : 0;
    const uint32_t right = shift > 0 ? 0 : (uint32_t)-shift;
    return divided_by_power(high_product(as_signed(sum << left), multiplier), right);
}

/* round(value / 2^exponent), halves to even. */
static uint64_t half_even(uint64_t value, uint32_t exponent)
{
    if (exponent == 0 || exponent > 63) {
        return exponent == 0 ? value : 0;
    }
    const uint64_t whole = value >> exponent, rest = value - (whole << exponent), half = UINT64_C(1) << (exponent - 1u);
    return whole + (rest > half || (rest == half && whole % 2u != 0) ? 1u : 0u);
}

/* How many bits a number has beyond the 24 of a single-precision one. */
static uint32_t excess(uint64_t value)
{
    uint32_t bits = 0;
    while (value >> bits >= UINT64_C(1) << 24) {
        ++bits;
    }
    return bits;
}

/* The multiplier's low 7 bits are a rest of the bias, in 128ths, which a sum beyond 24 bits cannot hold. The sum is
 * rounded to a single-precision number, the product to another, and that to an integer, halves to even each. */
static int32_t scaled_in_single(uint32_t sum, int32_t multiplier, int32_t shift)
{
    const int64_t whole_sum = as_signed(sum), most = INT64_C(1) << 24;
    const int64_t total = whole_sum * 128 + (whole_sum >= -most && whole_sum <= most ? multiplier % 128 : 0);
    const uint64_t magnitude = (uint64_t)(total < 0 ? -total : total);
    const uint32_t lost = excess(magnitude);
    const uint64_t product = half_even(magnitude, lost) * ((uint32_t)multiplier >> 7);
    const uint32_t cut = excess(product);
    const uint64_t rounded = half_even(product, cut);
    const int32_t exponent = (int32_t)(lost + cut) + shift - 31;
    const uint64_t whole = exponent < 0 ? half_even(rounded, (uint32_t)-exponent) : rounded << exponent;
    const int32_t result = whole > INT32_MAX ? INT32_MAX : (int32_t)whole;
    return total < 0 ? -result : result;
}

int8_t matrix8_model_scaled(uint32_t sum, int32_t multiplier, int32_t shift, const struct matrix8_output *output)
{
    const bool single = output->single != 0;
    const int32_t scaled = single ? scaled_in_single(sum, multiplier, shift) : scaled_twice(sum, multiplier, shift);
    const int64_t moved = (int64_t)scaled + as_signed(output->zero_point);
    const int64_t least = as_signed(output->clamp_min), greatest = as_signed(output->clamp_max);
    const int64_t clamped = moved < least ? least : (moved > greatest ? greatest : moved);
    return (int8_t)clamped;
}
