/* The depthwise kernel for one element type; included by uaccel_depthwise_conv2d.h, once a type. */

/* The weighted sum of one channel under one window, bias included. `inside`: no tap lies in the padding. */
UACCEL_KERNEL UACCEL_ACCUMULATOR UACCEL_FN(uaccel_depthwise_sum)(
    const struct uaccel_depthwise_conv2d *p, const UACCEL_ELEMENT *input, const UACCEL_STORED *weights,
    uaccel_index channel, UACCEL_ACCUMULATOR acc, uaccel_index top, uaccel_index left, bool inside)
{
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            const bool valid = inside || (y >= 0 && y < p->geo.in_height && x >= 0 && x < p->geo.in_width);
            const int32_t value = valid ? input[(y * p->geo.in_width + x) * p->geo.in_channels] : p->input_zero_point;
            const uaccel_index tap = ky * p->geo.kernel_width + kx;
            acc = UACCEL_ADD(acc, value * UACCEL_HERE(UACCEL_ROW(weights, tap, p->geo.out_channels), channel));
        }
    }
    return acc;
}

UACCEL_KERNEL void UACCEL_FN(uaccel_depthwise_conv2d)(const struct uaccel_depthwise_conv2d *p,
                                                      const UACCEL_ELEMENT *input, const UACCEL_STORED *weights,
                                                      const UACCEL_ACCUMULATOR *bias, const int32_t *multiplier,
                                                      const int8_t *shift, UACCEL_ELEMENT *output)
{
    const uaccel_index times = p->geo.out_channels / p->geo.in_channels;
    const uaccel_index reach_y = (p->geo.kernel_height - 1) * p->geo.dilation_height;
    const uaccel_index reach_x = (p->geo.kernel_width - 1) * p->geo.dilation_width;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index y = 0; y < p->geo.out_height; ++y) {
            for (uaccel_index x = 0; x < p->geo.out_width; ++x) {
                const uaccel_index top = y * p->geo.stride_height - p->geo.pad_top;
                const uaccel_index left = x * p->geo.stride_width - p->geo.pad_left;
                const bool inside =
                    top >= 0 && left >= 0 && top + reach_y < p->geo.in_height && left + reach_x < p->geo.in_width;
                for (uaccel_index c = 0; c < p->geo.out_channels; ++c) {
                    const UACCEL_ELEMENT *source = input + c / times;
                    const UACCEL_STORED *const own = UACCEL_FROM(weights, c);
                    const UACCEL_ACCUMULATOR acc =
                        inside ? UACCEL_FN(uaccel_depthwise_sum)(p, source, own, c, bias[c], top, left, true)
                               : UACCEL_FN(uaccel_depthwise_sum)(p, source, own, c, bias[c], top, left, false);
                    *output++ = UACCEL_FN(uaccel_output)(&p->output, acc, multiplier, shift, c);
                }
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}
