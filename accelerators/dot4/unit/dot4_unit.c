/* The unit of dot4: eight sums, and how they become int8. */
#include "dot4_instructions.h"

static uint32_t sums[8];
static int32_t zero_point, lowest, highest;

static inline int32_t byte_of(int32_t word, uint32_t number)
{
    return (int8_t)((uint32_t)word >> 8 * number & 0xFFu);
}

static inline int32_t product(int32_t left, int32_t right, uint32_t number)
{
    return byte_of(left, number) * byte_of(right, number);
}

static inline int32_t finished(int32_t sum, int32_t multiplier, int32_t shift)
{
    const uint32_t far = (shift < 0 ? 0u - (uint32_t)shift : (uint32_t)shift) & 31u;
    const int32_t scaled = shift < 0 ? sum : (int32_t)((uint32_t)sum << far);
    const int32_t high = (int32_t)(((int64_t)scaled * multiplier + (INT64_C(1) << 30)) >> 31);
    const int32_t mask = shift < 0 ? (int32_t)((UINT32_C(1) << far) - 1u) : 0;
    const int32_t half = (mask >> 1) + (high < 0 ? 1 : 0);
    const int32_t rounded = (shift < 0 ? high >> far : high) + ((high & mask) > half ? 1 : 0);
    const int32_t value = (int32_t)((uint32_t)rounded + (uint32_t)zero_point);
    const int32_t above = value < lowest ? lowest : value;
    return above > highest ? highest : above;
}

UACCEL_UNIT int32_t uaccel_unit(uint32_t function, int32_t left, int32_t right)
{
    const uint32_t which = function >> 3;
    switch (function & 7u) {
    case DOT4_BEGIN:
        if (which < 4) {
            sums[which] = (uint32_t)left;
            sums[which + 4] = (uint32_t)right;
        }
        return 0;
    case DOT4_ADD:
        for (uint32_t i = 0; which < 8 && i < 4; ++i) {
            sums[which] += (uint32_t)product(left, right, i);
        }
        return which < 8 ? (int32_t)sums[which] : 0;
    case DOT4_LANES:
        for (uint32_t i = 0; which < 2 && i < 4; ++i) {
            sums[4 * which + i] += (uint32_t)product(left, right, i);
        }
        return 0;
    case DOT4_RANGE:
        zero_point = byte_of(left, 0);
        lowest = byte_of(right, 0);
        highest = byte_of(right, 1);
        return 0;
    case DOT4_FINISH:
        return which < 8 ? finished((int32_t)sums[which], left, right) : 0;
    default:
        return 0;
    }
}
