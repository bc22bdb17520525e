/* The transposed convolution for one element type; included by uaccel_weights.h, once a type. */

/* The weighted sum of one output element. `y` and `x` count from the padding's edge. */
UACCEL_KERNEL UACCEL_ACCUMULATOR UACCEL_FN(uaccel_transpose_conv2d_sum)(
    const struct uaccel_transpose_conv2d *p, const UACCEL_ELEMENT *input, const int8_t *weights,
    UACCEL_ACCUMULATOR acc, uaccel_index y, uaccel_index x)
{
    for (uaccel_index ky = y % p->geo.stride_height; ky < p->geo.kernel_height; ky += p->geo.stride_height) {
        const uaccel_index row = (y - ky) / p->geo.stride_height;
        if (ky > y || row >= p->geo.in_height) {
            continue;
        }
        for (uaccel_index kx = x % p->geo.stride_width; kx < p->geo.kernel_width; kx += p->geo.stride_width) {
            const uaccel_index column = (x - kx) / p->geo.stride_width;
            if (kx > x || column >= p->geo.in_width) {
                continue;
            }
            const UACCEL_ELEMENT *pixel = input + (row * p->geo.in_width + column) * p->geo.in_channels;
            const int8_t *tap = weights + (ky * p->geo.kernel_width + kx) * p->geo.in_channels;
            for (uaccel_index c = 0; c < p->geo.in_channels; ++c) {
                acc = UACCEL_ADD(acc, (pixel[c] - p->input_zero_point) * tap[c]);
            }
        }
    }
    return acc;
}

UACCEL_KERNEL void UACCEL_FN(uaccel_transpose_conv2d)(const struct uaccel_transpose_conv2d *p,
                                                      const UACCEL_ELEMENT *input, const int8_t *weights,
                                                      const UACCEL_ACCUMULATOR *bias, const int32_t *multiplier,
                                                      const int8_t *shift, UACCEL_ELEMENT *output)
{
    const uaccel_index window = p->geo.kernel_height * p->geo.kernel_width * p->geo.in_channels;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index y = 0; y < p->geo.out_height; ++y) {
            for (uaccel_index x = 0; x < p->geo.out_width; ++x) {
                for (uaccel_index o = 0; o < p->geo.out_channels; ++o) {
                    const UACCEL_ACCUMULATOR acc = UACCEL_FN(uaccel_transpose_conv2d_sum)(
                        p, input, weights + o * window, bias[o], y + p->geo.pad_top, x + p->geo.pad_left);
                    *output++ = UACCEL_FN(uaccel_output)(&p->output, acc, multiplier, shift, o);
                }
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}
