/* Sums of products for one element type; included by uaccel_weights.h, once a type. */

UACCEL_KERNEL UACCEL_ACCUMULATOR UACCEL_FN(uaccel_products)(UACCEL_ACCUMULATOR acc, const UACCEL_ELEMENT *input,
                                                            const UACCEL_STORED *row, uaccel_index count)
{
    for (uaccel_index i = 0; i < count; ++i) {
        acc = UACCEL_ADD(acc, (int32_t)input[i] * UACCEL_HERE(UACCEL_FROM(row, i), i));
    }
    return acc;
}

UACCEL_KERNEL UACCEL_ELEMENT UACCEL_FN(uaccel_output)(const struct uaccel_output *p, UACCEL_ACCUMULATOR acc,
                                                      const int32_t *multiplier, const int8_t *shift,
                                                      uaccel_index channel)
{
    const uaccel_index scale = channel * p->scale_step;
    const int32_t scaled = UACCEL_REQUANTISE(acc, multiplier[scale], shift[scale]);
    return (UACCEL_ELEMENT)uaccel_finish(scaled, p->zero_point, p->clamp_min, p->clamp_max);
}

/* Channels first..last-1 of one pixel or row from its `size` elements. */
UACCEL_KERNEL void UACCEL_FN(uaccel_channels)(const struct uaccel_output *p, const UACCEL_ELEMENT *input,
                                              uaccel_index size, uaccel_index first, uaccel_index last,
                                              const UACCEL_STORED *weights, const UACCEL_ACCUMULATOR *bias,
                                              const int32_t *multiplier, const int8_t *shift, UACCEL_ELEMENT *output)
{
    for (uaccel_index o = first; o < last; ++o) {
        const UACCEL_ACCUMULATOR acc = UACCEL_PRODUCTS(bias[o], input, UACCEL_ROW(weights, o, size), size);
        output[o] = UACCEL_FN(uaccel_output)(p, acc, multiplier, shift, o);
    }
}
