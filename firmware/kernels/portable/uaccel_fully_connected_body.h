/* The fully connected kernel for one element type; included by uaccel_fully_connected.h, once a type. */

UACCEL_KERNEL void UACCEL_FN(uaccel_fully_connected)(const struct uaccel_fully_connected *p,
                                                     const UACCEL_ELEMENT *input, const int8_t *weights,
                                                     const UACCEL_ACCUMULATOR *bias, const int32_t *multiplier,
                                                     const int8_t *shift, UACCEL_ELEMENT *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        const int8_t *row = weights;
        for (uaccel_index u = 0; u < p->units; ++u) {
            UACCEL_ACCUMULATOR acc = bias[u];
            for (uaccel_index i = 0; i < p->depth; ++i) {
                acc = UACCEL_ADD(acc, (int32_t)input[i] * row[i]);
            }
            const int32_t scaled = UACCEL_REQUANTISE(acc, multiplier[u * p->scale_step], shift[u * p->scale_step]);
            *output++ = (UACCEL_ELEMENT)uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
            row += p->depth;
        }
        input += p->depth;
    }
}
