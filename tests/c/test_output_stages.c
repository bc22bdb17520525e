/* Output stages beyond plain fixed point, against values worked out by hand. */
#include "uaccel_half_even.h"
#include "uaccel_requantize.h"

#include "unit.h"

#define HALF (INT32_C(1) << 30)

static void test_half_even(void)
{
    static const int64_t wanted[] = {-2, -2, -2, -1, 0, 0, 0, 1, 2, 2, 2}; /* of halves from -2.5 to 2.5 */
    for (int32_t i = 0; i <= 10; ++i) {
        CHECK_EQ(uaccel_round_half_even(i - 5, 1, 0), wanted[i]);
        CHECK_EQ(uaccel_round_half_even((i - 5) * (INT64_C(1) << 39), 40, 0), wanted[i]);
    }
    CHECK_EQ(uaccel_round_half_even(INT64_C(1) << 62, 62, 0), 1);
}

/* Of 16 in a step: 6 to 10 are as good as the middle. */
static void test_nearly_half(void)
{
    static const int64_t below[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1};
    static const int64_t above[] = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    for (int32_t i = 0; i < 16; ++i) {
        CHECK_EQ(uaccel_round_half_even(i, 4, 2), below[i]);
        CHECK_EQ(uaccel_round_half_even(16 + i, 4, 2), above[i]);
        CHECK_EQ(uaccel_round_half_even(i - 32, 4, 2), below[i] - 2);
    }
}

static void test_finish(void)
{
    static const int64_t rounded[] = {-200, -96, -95, -94, 0, 93, 94, 95, 200};
    static const int32_t wanted[] = {-100, -100, -100, -99, -5, 88, 89, 90, 90};
    for (int32_t i = 0; i < 9; ++i) {
        CHECK_EQ(uaccel_finish_half_even(rounded[i], -5, -100, 90, true), wanted[i]);
        CHECK_EQ(uaccel_finish_half_even(rounded[i], -5, -100, 90, false), wanted[i]);
    }
    CHECK_EQ(uaccel_finish_half_even(INT64_C(1) << 50, 3, -128, 127, false), 127);
    CHECK_EQ(uaccel_finish_half_even(-(INT64_C(1) << 50), 3, -128, 127, false), -128);
}

static struct uaccel_requantize by(int32_t input_zero_point, int32_t output_zero_point, int32_t multiplier, int32_t shift)
{
    const struct uaccel_requantize p = {4, input_zero_point, output_zero_point, multiplier, shift, -128, 127};
    return p;
}

/* A factor of one is none: not even 31 bits are rounded. Others go through the output stage. */
static void test_requantize(void)
{
    const struct uaccel_requantize same = by(3, -2, HALF, 1), half = by(3, -2, HALF, 0), odd = by(3, -2, HALF + 1, 1);
    struct uaccel_requantize wide = by(0, 0, HALF, 1);
    wide.clamp_min = INT32_MIN;
    wide.clamp_max = INT32_MAX;
    CHECK_EQ(uaccel_requantize_value(&same, 10), 5);
    CHECK_EQ(uaccel_requantize_value(&same, -100), -105);
    CHECK_EQ(uaccel_requantize_value(&same, 500), 127);
    CHECK_EQ(uaccel_requantize_value(&same, -500), -128);
    CHECK_EQ(uaccel_requantize_value(&half, 8), 1); /* 2.5 upwards */
    CHECK_EQ(uaccel_requantize_value(&half, -2), -4); /* -2.5 upwards */
    CHECK_EQ(uaccel_requantize_value(&odd, 10), 5);
    CHECK_EQ(uaccel_requantize_value(&wide, HALF), -HALF); /* it wraps to 31 bits, as the reference does */
    CHECK_EQ(uaccel_requantize_value(&wide, HALF - 1), HALF - 1);
    wide.multiplier = HALF + (1 << 21); /* 1 + 2^-9 */
    CHECK_EQ(uaccel_requantize_value(&wide, 1 << 20), (1 << 20) + (1 << 11));
    wide.shift = 2;
    CHECK_EQ(uaccel_requantize_value(&wide, 1 << 20), (1 << 21) + (1 << 12));
    wide.multiplier = HALF; /* 2 */
    CHECK_EQ(uaccel_requantize_value(&wide, 1 << 20), 1 << 21);
}

static void test_requantize_in_single_precision(void)
{
    const struct uaccel_requantize same = by(3, -2, HALF, 1), half = by(3, -2, HALF, 0);
    struct uaccel_requantize wide = by(0, 1, HALF, 1);
    wide.clamp_min = INT32_MIN;
    wide.clamp_max = INT32_MAX;
    CHECK_EQ(uaccel_requantize_value_float32(&same, 10), 5);
    CHECK_EQ(uaccel_requantize_value_float32(&same, 500), 127);
    CHECK_EQ(uaccel_requantize_value_float32(&half, 8), 0); /* 2.5 to even */
    CHECK_EQ(uaccel_requantize_value_float32(&half, 10), 2); /* 3.5 to even */
    CHECK_EQ(uaccel_requantize_value_float32(&half, -2), -4);
    CHECK_EQ(uaccel_requantize_value_float32(&wide, 1 << 25), UACCEL_FLOAT32_HIGHEST + 1); /* saturated */
    CHECK_EQ(uaccel_requantize_value_float32(&wide, -(1 << 25)), UACCEL_FLOAT32_LOWEST + 1);
    wide.shift = 2;
    CHECK_EQ(uaccel_requantize_value_float32(&wide, 100), 201);
    wide.multiplier = HALF + (1 << 29); /* 1.5 */
    wide.shift = 1;
    CHECK_EQ(uaccel_requantize_value_float32(&wide, 100), 151);
}

static void test_as_many_as_there_are(void)
{
    const struct uaccel_requantize p = by(1, 0, HALF, 1);
    const int8_t input[] = {1, 2, 3, 4, 5};
    int8_t output[] = {99, 99, 99, 99, 99};
    uaccel_requantize_s8_s8(&p, input, output);
    for (int32_t i = 0; i < 5; ++i) {
        CHECK_EQ(output[i], i < 4 ? i : 99);
    }
}

int main(void)
{
    test_half_even();
    test_nearly_half();
    test_finish();
    test_requantize();
    test_requantize_in_single_precision();
    test_as_many_as_there_are();
    return UNIT_RESULT();
}
