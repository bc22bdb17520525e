/* Normalisation of rows, for one element type; included by uaccel_normalize.h. */

UACCEL_KERNEL struct uaccel_layer_norm_row UACCEL_FN(uaccel_layer_norm_row)(const struct uaccel_layer_norm *p,
                                                                            const UACCEL_ELEMENT *input)
{
    struct uaccel_layer_norm_row row = {0, 0, p->right};
    UACCEL_ACCUMULATOR squares = 0;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        row.sum += input[i];
        squares += input[i] * input[i];
    }
    const int64_t spread = (int64_t)p->depth * squares - (int64_t)row.sum * row.sum;
    int64_t variance = spread * (INT64_C(1) << p->fraction) + p->epsilon;
    variance = variance < 1 ? 1 : variance;
    for (; variance < INT64_C(1) << 60; variance <<= 2) {
        --row.right;
    }
    row.right = row.right < 0 ? 0 : row.right; /* then all distances are zero */
    row.root = uaccel_layer_norm_root(variance >> 31);
    return row;
}

/* The output may overwrite the input: a row is read whole before its first element is written. */
UACCEL_KERNEL void UACCEL_FN(uaccel_layer_norm)(const struct uaccel_layer_norm *p, const UACCEL_ELEMENT *input,
                                                const int32_t *gamma, const int32_t *beta, UACCEL_ELEMENT *output)
{
    uaccel_index first = 0, group = 0;
    for (uaccel_index r = 0; r < p->rows; ++r) {
        const struct uaccel_layer_norm_row row = UACCEL_FN(uaccel_layer_norm_row)(p, input);
        for (uaccel_index i = 0; i < p->depth; ++i) {
            const int64_t normal = ((p->depth * input[i] - row.sum) * row.root) >> row.right;
            const uaccel_index channel = first + i / p->inner;
            const int64_t total = normal * gamma[channel] + beta[channel] * (INT64_C(1) << p->beta_shift);
            const int64_t rounded = uaccel_round_half_even(total, p->shift, 0);
            output[i] = (UACCEL_ELEMENT)uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min,
                                                                p->clamp_max, p->shift > 32);
        }
        first += p->depth / p->inner;
        if (++group == p->groups) {
            first = group = 0;
        }
        input += p->depth;
        output += p->depth;
    }
}
