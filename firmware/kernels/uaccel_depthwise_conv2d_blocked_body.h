/* The kernels for one way to round; included by uaccel_depthwise_conv2d_blocked.h, once a way. */

/* Four channels from `channel` on, a multiple of four of them in all. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_depthwise_blocked_quad)(
    const struct uaccel_depthwise_conv2d_blocked *p, const int8_t *const *taps, uaccel_index channel,
    const UACCEL_FOUR *weights, const int32_t *constants, int8_t *output)
{
    int32_t a = constants[0], b = constants[4], c = constants[8], d = constants[12];
    for (const int8_t *const *end = taps + p->kernel_height * p->kernel_width; taps != end; ++taps) {
        const int8_t *pixel = *taps + channel;
        a += pixel[0] * UACCEL_WEIGHT(weights, 0);
        b += pixel[1] * UACCEL_WEIGHT(weights, 1);
        c += pixel[2] * UACCEL_WEIGHT(weights, 2);
        d += pixel[3] * UACCEL_WEIGHT(weights, 3);
        weights += UACCEL_WEIGHTS(4);
    }
    output[0] = UACCEL_BLOCKED_ROUND(&p->finish, a, constants);
    output[1] = UACCEL_BLOCKED_ROUND(&p->finish, b, constants + 4);
    output[2] = UACCEL_BLOCKED_ROUND(&p->finish, c, constants + 8);
    output[3] = UACCEL_BLOCKED_ROUND(&p->finish, d, constants + 12);
}

/* scratch: an address a tap, and a pixel. weights: for each four channels and each tap those of the channels. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_depthwise_conv2d_blocked_s8)(
    const struct uaccel_depthwise_conv2d_blocked *p, const int8_t *input, const UACCEL_FOUR *weights,
    const int32_t *constants, int8_t *output, void *scratch)
{
    const uaccel_index count = p->kernel_height * p->kernel_width;
    const int8_t **taps = scratch;
    int8_t *outside = (int8_t *)(taps + count);
    memset(outside, (int)p->input_zero_point, (size_t)p->channels);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                uaccel_depthwise_blocked_list(p, input, y * p->stride_height - p->pad_top,
                                              x * p->stride_width - p->pad_left, outside, taps);
                const UACCEL_FOUR *own = weights;
                for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                    UACCEL_ROUNDED(uaccel_depthwise_blocked_quad)(p, taps, channel, own, constants + channel * 4,
                                                                  output + channel);
                    own += UACCEL_WEIGHTS(4) * count;
                }
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}
