/* Matrix products of families that widen the right side's columns less their zero point, and take sums one by one:
 * UACCEL_DOTS names the family, and UACCEL_DOTS_BYTE saturates to eight bits; included once a family. */

/* What of the right side's zero point is left to do: nothing. */
UACCEL_KERNEL int32_t UACCEL_DOTS(uaccel_batch_matmul_zero)(const struct uaccel_batch_matmul *p)
{
    (void)p;
    return 0;
}

UACCEL_KERNEL int32_t UACCEL_DOTS(uaccel_batch_matmul_sum)(const int8_t *row, uaccel_index depth)
{
    (void)row;
    (void)depth;
    return 0;
}

UACCEL_KERNEL void UACCEL_DOTS(uaccel_batch_matmul_finish)(const struct uaccel_batch_matmul *p, const int32_t *sums,
                                                           const int32_t *column, int32_t row, uaccel_index count,
                                                           int8_t *output)
{
    (void)row;
    for (uaccel_index i = 0; i < count; ++i) {
        const int32_t scaled = uaccel_requantise(sums[i] + column[i], p->multiplier, p->shift);
        output[i] = (int8_t)UACCEL_DOTS_BYTE(uaccel_add_wrapping(scaled, p->output_zero_point));
    }
}

#include "uaccel_batch_matmul_dots_body.h"
#undef UACCEL_DOTS_BYTE
