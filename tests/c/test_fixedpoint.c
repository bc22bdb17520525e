/* Output stages against values worked out by hand: the kernels and the exact meaning that they are compared with have
 * the same idea of this arithmetic, so a fault of the idea shows here. */
#include "uaccel_fixedpoint.h"

#include "unit.h"

#define MOST INT32_MAX
#define HALF (INT32_C(1) << 30)

static void test_wrapping(void)
{
    CHECK_EQ(uaccel_add_wrapping(MOST, 1), INT32_MIN);
    CHECK_EQ(uaccel_add_wide(INT64_MAX, 1), INT64_MIN);
    CHECK_EQ(uaccel_shift_left(HALF, 1), INT32_MIN);
    CHECK_EQ(uaccel_shift_left(-3, 2), -12);
}

static void test_leading_zeros(void)
{
    CHECK_EQ(uaccel_leading_zeros(0), 32);
    CHECK_EQ(uaccel_leading_zeros(1), 31);
    CHECK_EQ(uaccel_leading_zeros(UINT32_MAX), 0);
}

static void test_high_words(void)
{
    CHECK_EQ(uaccel_high_mul(1, HALF), 1); /* 0.5: halves upwards */
    CHECK_EQ(uaccel_high_mul(-1, HALF), 0);
    CHECK_EQ(uaccel_high_mul(-3, HALF), -1);
    CHECK_EQ(uaccel_high_mul(INT32_MIN, INT32_MIN), MOST);
    CHECK_EQ(uaccel_high_mul(INT32_MIN, MOST), -MOST);
}

static void test_quotients(void)
{
    CHECK_EQ(uaccel_rounding_shift_right(5, 1), 3);
    CHECK_EQ(uaccel_rounding_shift_right(-5, 1), -3);
    CHECK_EQ(uaccel_rounding_shift_right(-6, 2), -2);
    CHECK_EQ(uaccel_rounding_shift_right(5, 2), 1); /* 1.25 */
    CHECK_EQ(uaccel_rounding_shift_right(-5, 2), -1);
    CHECK_EQ(uaccel_rounding_shift_right(-9, 0), -9);
    CHECK_EQ(uaccel_rounding_shift_right(MOST, 31), 1);
    CHECK_EQ(uaccel_rounding_shift_right(INT32_MIN, 31), -1);
}

static void test_requantise(void)
{
    CHECK_EQ(uaccel_requantise(1000, HALF, 1), 1000);
    CHECK_EQ(uaccel_requantise(5, HALF, 0), 3);
    CHECK_EQ(uaccel_requantise(-5, HALF, 0), -2);
    CHECK_EQ(uaccel_requantise(-5, HALF, -1), -1); /* twice: -2.5 to -2, then -1 */
    CHECK_EQ(uaccel_requantise(HALF, HALF, 2), 0); /* wraps first */
    CHECK_EQ(uaccel_requantise(MOST, MOST, 0), MOST - 1);
}

/* The multiplier has 15 bits: the nearest to its 31, but never 2^15, which a 16-bit multiplier cannot be. */
static void test_requantise_wide(void)
{
    CHECK_EQ(uaccel_requantise_wide(32768, 0x7FFE8000, 0), 32767); /* 0x7FFE8000 rounds to 0x7FFF */
    CHECK_EQ(uaccel_requantise_wide(32768, 0x7FFE7FFF, 0), 32766); /* and what is less to 0x7FFE */
    CHECK_EQ(uaccel_requantise_wide(32768, 0x7FFEFFFF, 0), 32767);
    CHECK_EQ(uaccel_requantise_wide(32768, 0x7FFF0000, 0), 32767);
    CHECK_EQ(uaccel_requantise_wide(32768, 0x7FFF7FFF, 0), 32767);
    CHECK_EQ(uaccel_requantise_wide(32768, 0x7FFF8000, 0), 32767); /* where 0x8000 would be nearest */
    CHECK_EQ(uaccel_requantise_wide(32768, MOST, 0), 32767);
    CHECK_EQ(uaccel_requantise_wide(-32768, MOST, 0), -32767);
    CHECK_EQ(uaccel_requantise_wide(INT64_C(1) << 45, MOST, -15), 0x7FFF * (1 << 15));
    CHECK_EQ(uaccel_requantise_wide(1, HALF, 0), 1); /* 0.5: halves upwards, rounded once */
    CHECK_EQ(uaccel_requantise_wide(-1, HALF, 0), 0);
    CHECK_EQ(uaccel_requantise_wide(5, HALF, 8), 640);
}

int main(void)
{
    test_wrapping();
    test_leading_zeros();
    test_high_words();
    test_quotients();
    test_requantise();
    test_requantise_wide();
    return UNIT_RESULT();
}
