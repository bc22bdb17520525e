/* Product of a function of one 8-bit tensor and a function of another, rounded once, portable C. */
#ifndef UACCEL_FUNCTION_PRODUCT_H
#define UACCEL_FUNCTION_PRODUCT_H

#include "uaccel_half_even.h"

struct uaccel_function_product {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t entries1, words2;
    int32_t shift;
    int64_t tolerance;
    int32_t output_zero_point;
    int32_t clamp_min, clamp_max;
};

/* The first factor: a table of one entry is a zero point. */
UACCEL_KERNEL int64_t uaccel_function_product_first(const struct uaccel_function_product *p, const int32_t *table,
                                                    int8_t value)
{
    return p->entries1 == 1 ? (int64_t)(value - table[0]) : (int64_t)table[(uint8_t)value];
}

/* The second factor: its table may have a high word for each entry, behind all low ones. */
UACCEL_KERNEL int64_t uaccel_function_product_second(const struct uaccel_function_product *p, const int32_t *table,
                                                     int8_t value)
{
    const int32_t low = table[(uint8_t)value];
    return p->words2 == 1 ? low : table[256 + (uint8_t)value] * (INT64_C(1) << 32) + low;
}

UACCEL_KERNEL int8_t uaccel_function_product_combine(const struct uaccel_function_product *p, int64_t product)
{
    const int64_t rounded = uaccel_round_half_even(product, p->shift, p->tolerance);
    return (int8_t)uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max, false);
}

/* Both tables are indexed by the bits of an element. A stride of 0 repeats an input. */
UACCEL_KERNEL void uaccel_function_product_s8(const struct uaccel_function_product *p, const int8_t *input1,
                                              const int8_t *input2, const int32_t *table1, const int32_t *table2,
                                              int8_t *output)
{
    const uaccel_index *s1 = p->strides1, *s2 = p->strides2;
    UACCEL_OUTER_LOOPS {
        const int8_t *row1 = input1 + UACCEL_OUTER_AT(s1);
        const int8_t *row2 = input2 + UACCEL_OUTER_AT(s2);
        int64_t x = uaccel_function_product_first(p, table1, *row1);
        int64_t y = uaccel_function_product_second(p, table2, *row2);
        UACCEL_LOOP(i, 5) {
            x = s1[5] != 0 ? uaccel_function_product_first(p, table1, row1[i]) : x;
            y = s2[5] != 0 ? uaccel_function_product_second(p, table2, row2[i]) : y;
            *output++ = uaccel_function_product_combine(p, x * y);
        }
    }
}

#endif
