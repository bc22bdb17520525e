/* The softmax kernel for one type of inputs and of outputs; included by uaccel_softmax.h, once a pair. */

UACCEL_KERNEL struct uaccel_softmax_once_row UACCEL_GIVEN_FN(uaccel_softmax_once_row)(
    const struct uaccel_softmax_once *p, const UACCEL_GIVEN *input, const int32_t *table)
{
    struct uaccel_softmax_once_row row = {input[0], 0, p->shift};
    for (uaccel_index i = 1; i < p->depth; ++i) {
        row.largest = input[i] > row.largest ? input[i] : row.largest;
    }
    int64_t sum = 0;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        sum += UACCEL_GIVEN_EXP(p, table, row.largest - input[i]);
    }
    /* the largest exponential alone has 31 bits */
    for (; sum >= INT64_C(1) << 31; sum >>= 1) {
        ++row.shift;
    }
    row.reciprocal = ((int64_t)p->inverse << 31) / sum;
    return row;
}

/* The output may overwrite an input of the same type: a row is read twice before its first element is written. */
UACCEL_KERNEL void UACCEL_GIVEN_FN(uaccel_softmax_once)(const struct uaccel_softmax_once *p,
                                                        const UACCEL_GIVEN *input, const int32_t *table,
                                                        UACCEL_ELEMENT *output)
{
    const int32_t highest = (INT32_C(1) << (8 * (int32_t)sizeof(UACCEL_ELEMENT) - 1)) - 1;
    for (uaccel_index r = 0; r < p->rows; ++r) {
        const struct uaccel_softmax_once_row row = UACCEL_GIVEN_FN(uaccel_softmax_once_row)(p, input, table);
        for (uaccel_index i = 0; i < p->depth; ++i) {
            /* below 2^62: what is shifted by more than that is less than a half */
            const int64_t share = row.reciprocal * UACCEL_GIVEN_EXP(p, table, row.largest - input[i]);
            const int64_t kept = row.shift > 62 ? 0 : share;
            const int32_t shift = row.shift > 62 ? 62 : row.shift;
            const int64_t rounded = uaccel_round_half_even(kept, shift, 0);
            output[i] = (UACCEL_ELEMENT)uaccel_finish_half_even(rounded, p->output_zero_point, -highest - 1, highest,
                                                                p->shift > 32);
        }
        input += p->depth;
        output += p->depth;
    }
}
