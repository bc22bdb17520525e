/* The softmax kernel for one output type; included by uaccel_softmax.h, once a type. */

/* An element's share of the sum, as a fraction of the output's range. More than 511 equal largest elements in a row
 * have so small a share that 8 bits of it are zero; the shift alone would then be undefined. */
UACCEL_KERNEL UACCEL_ELEMENT UACCEL_FN(uaccel_softmax_share)(int32_t exponential, int32_t reciprocal,
                                                             int32_t headroom)
{
    const int32_t bits = 8 * (int32_t)sizeof(UACCEL_ELEMENT);
    const int32_t lowest = -(INT32_C(1) << (bits - 1));
    const int32_t exponent = 12 - headroom + 31 - bits;
    const int32_t share =
        exponent > 31 ? 0 : uaccel_rounding_shift_right(uaccel_high_mul(reciprocal, exponential), exponent);
    return (UACCEL_ELEMENT)uaccel_clamp(share + lowest, lowest, -lowest - 1);
}

/* The output may overwrite an input of the same type: a row is read twice before its first element is written. */
UACCEL_KERNEL void UACCEL_FN(uaccel_softmax_s8)(const struct uaccel_softmax *p, const int8_t *input,
                                                const int32_t *table, UACCEL_ELEMENT *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        const int32_t largest = uaccel_softmax_largest(p, input);
        const uint32_t sum = uaccel_softmax_sum(p, input, largest, table);
        const int32_t headroom = uaccel_leading_zeros(sum);
        const int32_t reciprocal = uaccel_reciprocal(sum << headroom);
        for (uaccel_index i = 0; i < p->depth; ++i) {
            const int32_t exponential = uaccel_softmax_exp(p, table, largest - input[i]);
            output[i] = UACCEL_FN(uaccel_softmax_share)(exponential, reciprocal, headroom);
        }
        input += p->depth;
        output += p->depth;
    }
}
