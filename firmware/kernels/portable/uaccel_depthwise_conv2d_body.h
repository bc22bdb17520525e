/* The depthwise kernel for one element type; included by uaccel_depthwise_conv2d.h, once a type. */

/* The weighted sum of one channel under one window, bias included. `inside`: no tap lies in the padding. */
UACCEL_KERNEL UACCEL_ACCUMULATOR UACCEL_FN(uaccel_depthwise_sum)(
    const struct uaccel_depthwise_conv2d *p, const UACCEL_ELEMENT *input, const UACCEL_STORED *weights,
    uaccel_index channel, UACCEL_ACCUMULATOR acc, uaccel_index top, uaccel_index left, bool inside)
{
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->dilation_width;
            const bool valid = inside || (y >= 0 && y < p->in_height && x >= 0 && x < p->in_width);
            const int32_t value = valid ? input[(y * p->in_width + x) * p->in_channels] : p->input_zero_point;
            const uaccel_index tap = ky * p->kernel_width + kx;
            acc = UACCEL_ADD(acc, value * UACCEL_HERE(UACCEL_ROW(weights, tap, p->out_channels), channel));
        }
    }
    return acc;
}

UACCEL_KERNEL void UACCEL_FN(uaccel_depthwise_conv2d)(const struct uaccel_depthwise_conv2d *p,
                                                      const UACCEL_ELEMENT *input, const UACCEL_STORED *weights,
                                                      const UACCEL_ACCUMULATOR *bias, const int32_t *multiplier,
                                                      const int8_t *shift, UACCEL_ELEMENT *output)
{
    const uaccel_index times = p->out_channels / p->in_channels;
    const uaccel_index reach_y = (p->kernel_height - 1) * p->dilation_height;
    const uaccel_index reach_x = (p->kernel_width - 1) * p->dilation_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const uaccel_index top = y * p->stride_height - p->pad_top;
                const uaccel_index left = x * p->stride_width - p->pad_left;
                const bool inside =
                    top >= 0 && left >= 0 && top + reach_y < p->in_height && left + reach_x < p->in_width;
                for (uaccel_index c = 0; c < p->out_channels; ++c) {
                    const UACCEL_ELEMENT *source = input + c / times;
                    const UACCEL_STORED *const own = UACCEL_FROM(weights, c);
                    const UACCEL_ACCUMULATOR acc =
                        inside ? UACCEL_FN(uaccel_depthwise_sum)(p, source, own, c, bias[c], top, left, true)
                               : UACCEL_FN(uaccel_depthwise_sum)(p, source, own, c, bias[c], top, left, false);
                    *output++ = UACCEL_FN(uaccel_output)(&p->output, acc, multiplier, shift, c);
                }
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}
