/* The transposed convolution for one element type; included by uaccel_transpose_conv2d.h, once a type. */

/* The weighted sum of one output element. `y` and `x` count from the padding's edge. */
UACCEL_KERNEL UACCEL_ACCUMULATOR UACCEL_FN(uaccel_transpose_conv2d_sum)(
    const struct uaccel_transpose_conv2d *p, const UACCEL_ELEMENT *input, const int8_t *weights,
    UACCEL_ACCUMULATOR acc, uaccel_index y, uaccel_index x)
{
    for (uaccel_index ky = y % p->stride_height; ky < p->kernel_height; ky += p->stride_height) {
        const uaccel_index row = (y - ky) / p->stride_height;
        if (ky > y || row >= p->in_height) {
            continue;
        }
        for (uaccel_index kx = x % p->stride_width; kx < p->kernel_width; kx += p->stride_width) {
            const uaccel_index column = (x - kx) / p->stride_width;
            if (kx > x || column >= p->in_width) {
                continue;
            }
            const UACCEL_ELEMENT *pixel = input + (row * p->in_width + column) * p->in_channels;
            const int8_t *tap = weights + (ky * p->kernel_width + kx) * p->in_channels;
            for (uaccel_index c = 0; c < p->in_channels; ++c) {
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
    const uaccel_index window = p->kernel_height * p->kernel_width * p->in_channels;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                for (uaccel_index o = 0; o < p->out_channels; ++o) {
                    const UACCEL_ACCUMULATOR acc = UACCEL_FN(uaccel_transpose_conv2d_sum)(
                        p, input, weights + o * window, bias[o], y + p->pad_top, x + p->pad_left);
                    *output++ = UACCEL_FN(uaccel_output)(&p->output, acc, multiplier, shift, o);
                }
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}
