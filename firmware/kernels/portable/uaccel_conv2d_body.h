/* The convolution kernels for one element type; included by uaccel_conv2d.h, once a type. */

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
