/* The fully connected kernel for one element type; included by uaccel_fully_connected.h, once a type. */

UACCEL_KERNEL void UACCEL_FN(uaccel_fully_connected)(const struct uaccel_fully_connected *p,
                                                     const UACCEL_ELEMENT *input, const UACCEL_STORED *weights,
                                                     const UACCEL_ACCUMULATOR *bias, const int32_t *multiplier,
                                                     const int8_t *shift, UACCEL_ELEMENT *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        UACCEL_FN(uaccel_channels)(&p->output, input, p->depth, 0, p->units, weights, bias, multiplier, shift, output);
        input += p->depth;
        output += p->units;
    }
}
