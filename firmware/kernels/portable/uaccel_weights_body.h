/* Layers with weights for one element type; included by uaccel_weights.h, once a type. */

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

/* The elements under one window, `depth` channels from `channel` on, as a contiguous patch. */
UACCEL_KERNEL void UACCEL_FN(uaccel_conv2d_gather)(const struct uaccel_conv2d *p, const UACCEL_ELEMENT *input,
                                                   uaccel_index top, uaccel_index left, uaccel_index channel,
                                                   uaccel_index depth, UACCEL_ELEMENT *patch)
{
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->geo.dilation_width;
            const bool inside = y >= 0 && y < p->geo.in_height && x >= 0 && x < p->geo.in_width;
            const UACCEL_ELEMENT *pixel =
                inside ? input + (y * p->geo.in_width + x) * p->geo.in_channels + channel : input;
            for (uaccel_index c = 0; c < depth; ++c) {
                patch[c] = inside ? pixel[c] : (UACCEL_ELEMENT)p->input_zero_point;
            }
            patch += depth;
        }
    }
}

/* Any window. scratch: one group's patch, kernel_height * kernel_width * in_channels / groups elements. */
UACCEL_KERNEL void UACCEL_FN(uaccel_conv2d)(const struct uaccel_conv2d *p, const UACCEL_ELEMENT *input,
                                            const UACCEL_STORED *weights, const UACCEL_ACCUMULATOR *bias,
                                            const int32_t *multiplier, const int8_t *shift,
                                            UACCEL_ELEMENT *output, void *scratch)
{
    UACCEL_ELEMENT *patch = scratch;
    const uaccel_index depth = p->geo.in_channels / p->groups;
    const uaccel_index per_group = p->geo.out_channels / p->groups;
    const uaccel_index size = p->geo.kernel_height * p->geo.kernel_width * depth;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index y = 0; y < p->geo.out_height; ++y) {
            for (uaccel_index x = 0; x < p->geo.out_width; ++x) {
                const uaccel_index top = y * p->geo.stride_height - p->geo.pad_top;
                const uaccel_index left = x * p->geo.stride_width - p->geo.pad_left;
                for (uaccel_index g = 0; g < p->groups; ++g) {
                    UACCEL_FN(uaccel_conv2d_gather)(p, input, top, left, g * depth, depth, patch);
                    UACCEL_FN(uaccel_channels)(&p->output, patch, size, g * per_group, (g + 1) * per_group, weights,
                                               bias, multiplier, shift, output);
                }
                output += p->geo.out_channels;
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

/* 1x1 windows without padding or groups: every input pixel is a patch already. */
UACCEL_KERNEL void UACCEL_FN(uaccel_conv2d_pointwise)(const struct uaccel_conv2d *p, const UACCEL_ELEMENT *input,
                                                      const UACCEL_STORED *weights, const UACCEL_ACCUMULATOR *bias,
                                                      const int32_t *multiplier, const int8_t *shift,
                                                      UACCEL_ELEMENT *output)
{
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index y = 0; y < p->geo.out_height; ++y) {
            const UACCEL_ELEMENT *pixel = input + y * p->geo.stride_height * p->geo.in_width * p->geo.in_channels;
            for (uaccel_index x = 0; x < p->geo.out_width; ++x) {
                UACCEL_FN(uaccel_channels)(&p->output, pixel, p->geo.in_channels, 0, p->geo.out_channels, weights, bias,
                                           multiplier, shift, output);
                pixel += p->geo.stride_width * p->geo.in_channels;
                output += p->geo.out_channels;
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

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
