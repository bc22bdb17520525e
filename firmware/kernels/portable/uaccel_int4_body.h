/* The kernels for one way to round; included by uaccel_int4.h, once a way. */

UACCEL_KERNEL void UACCEL_ROUNDED(uaccel_fully_connected_int4_s8)(
    const struct uaccel_fully_connected *p, const int8_t *input, const uint8_t *weights, const int32_t *bias,
    const int32_t *multiplier, const int8_t *shift, int8_t *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        for (uaccel_index u = 0; u < p->units; ++u) {
            const int32_t acc = uaccel_int4_sum(input, weights + u * ((p->depth + 1) / 2), p->depth, bias[u]);
            const uaccel_index scale = u * p->scale_step;
            const int32_t scaled = UACCEL_ROUNDED(uaccel_requantise)(acc, multiplier[scale], shift[scale]);
            *output++ = (int8_t)uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
        }
        input += p->depth;
    }
}

/* scratch: one group's patch, kernel_height * kernel_width * in_channels / groups elements. */
UACCEL_KERNEL void UACCEL_ROUNDED(uaccel_conv2d_int4_s8)(
    const struct uaccel_conv2d *p, const int8_t *input, const uint8_t *weights, const int32_t *bias,
    const int32_t *multiplier, const int8_t *shift, int8_t *output, void *scratch)
{
    int8_t *patch = scratch;
    const uaccel_index depth = p->in_channels / p->groups;
    const uaccel_index per_group = p->out_channels / p->groups;
    const uaccel_index size = p->kernel_height * p->kernel_width * depth;
    const uaccel_index pixels = p->out_height * p->out_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
            const uaccel_index top = pixel / p->out_width * p->stride_height - p->pad_top;
            const uaccel_index left = pixel % p->out_width * p->stride_width - p->pad_left;
            for (uaccel_index o = 0; o < p->out_channels; ++o) {
                if (o % per_group == 0) {
                    uaccel_conv2d_gather_s8(p, input, top, left, o / per_group * depth, depth, patch);
                }
                const int32_t acc = uaccel_int4_sum(patch, weights + o * ((size + 1) / 2), size, bias[o]);
                const uaccel_index scale = o * p->scale_step;
                const int32_t scaled = UACCEL_ROUNDED(uaccel_requantise)(acc, multiplier[scale], shift[scale]);
                *output++ = (int8_t)uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

UACCEL_KERNEL void UACCEL_ROUNDED(uaccel_depthwise_conv2d_int4_s8)(
    const struct uaccel_depthwise_conv2d *p, const int8_t *input, const uint8_t *weights, const int32_t *bias,
    const int32_t *multiplier, const int8_t *shift, int8_t *output)
{
    const uaccel_index pixels = p->out_height * p->out_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
            const uaccel_index top = pixel / p->out_width * p->stride_height - p->pad_top;
            const uaccel_index left = pixel % p->out_width * p->stride_width - p->pad_left;
            for (uaccel_index c = 0; c < p->out_channels; ++c) {
                const int32_t acc = uaccel_depthwise_int4_sum(p, input, weights, c, bias[c], top, left);
                const uaccel_index scale = c * p->scale_step;
                const int32_t scaled = UACCEL_ROUNDED(uaccel_requantise)(acc, multiplier[scale], shift[scale]);
                *output++ = (int8_t)uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}
