/* The kernels for one way to round; included by uaccel_depthwise_conv2d_blocked.h, once a way. */

/* The addresses of the pixels under a window; `outside` for those that there are not. */
UACCEL_KERNEL void UACCEL_BLOCKED(uaccel_depthwise_blocked_list)(
    const struct uaccel_depthwise_conv2d_blocked *p, const UACCEL_ITEM *input, uaccel_index top, uaccel_index left,
    const UACCEL_ITEM *outside, const UACCEL_ITEM **taps)
{
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx) {
            const uaccel_index x = left + kx * p->dilation_width;
            const bool inside = y >= 0 && y < p->in_height && x >= 0 && x < p->in_width;
            *taps++ = inside ? input + (y * p->in_width + x) * p->channels : outside;
        }
    }
}

/* Four results, whose channels of the input are `at`[0] to `at`[3] from each pixel on. */
UACCEL_KERNEL void UACCEL_BLOCKED(uaccel_depthwise_blocked_four)(
    const struct uaccel_depthwise_conv2d_blocked *p, const UACCEL_ITEM *const *taps, const uaccel_index *at,
    const UACCEL_FOUR *weights, const int32_t *constants, UACCEL_ITEM *output)
{
    const struct uaccel_blocked_finish finish = p->finish; /* which stores of elements cannot change */
    const uaccel_index first = at[0], one = at[1], two = at[2], three = at[3];
    int32_t a = constants[0], b = constants[3], c = constants[6], d = constants[9];
    for (const UACCEL_ITEM *const *end = taps + p->kernel_height * p->kernel_width; taps != end; ++taps) {
        const UACCEL_ITEM *pixel = *taps + first;
        a += pixel[0] * UACCEL_WEIGHT(weights, 0);
        b += pixel[one] * UACCEL_WEIGHT(weights, 1);
        c += pixel[two] * UACCEL_WEIGHT(weights, 2);
        d += pixel[three] * UACCEL_WEIGHT(weights, 3);
        weights += UACCEL_WEIGHTS(4);
    }
    output[0] = UACCEL_BLOCKED_ROUND(&finish, a, constants);
    output[1] = UACCEL_BLOCKED_ROUND(&finish, b, constants + 3);
    output[2] = UACCEL_BLOCKED_ROUND(&finish, c, constants + 6);
    output[3] = UACCEL_BLOCKED_ROUND(&finish, d, constants + 9);
}

/* Four channels from `channel` on. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_depthwise_blocked_quad)(
    const struct uaccel_depthwise_conv2d_blocked *p, const UACCEL_ITEM *const *taps, uaccel_index channel,
    const UACCEL_FOUR *weights, const int32_t *constants, UACCEL_ITEM *output)
{
    const uaccel_index at[4] = {channel, 1, 2, 3};
    UACCEL_BLOCKED(uaccel_depthwise_blocked_four)(p, taps, at, weights, constants, output);
}

/* scratch: an address a tap, and a pixel. weights: for each four channels and each tap those of the channels;
 * the last four are the last ones. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_depthwise_conv2d_blocked)(
    const struct uaccel_depthwise_conv2d_blocked *p, const UACCEL_ITEM *input, const UACCEL_FOUR *weights,
    const int32_t *constants, UACCEL_ITEM *output, void *scratch)
{
    const uaccel_index count = p->kernel_height * p->kernel_width;
    const UACCEL_ITEM **taps = scratch;
    UACCEL_ITEM *outside = (UACCEL_ITEM *)(taps + count);
    memset(outside, (int)p->input_zero_point, (size_t)p->channels * sizeof *outside);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                UACCEL_BLOCKED(uaccel_depthwise_blocked_list)(p, input, y * p->stride_height - p->pad_top,
                                                              x * p->stride_width - p->pad_left, outside, taps);
                const UACCEL_FOUR *own = weights;
                uaccel_index channel = 0;
                for (; channel + 4 <= p->channels; channel += 4) {
                    UACCEL_BLOCKED(uaccel_depthwise_blocked_quad)(p, taps, channel, own, constants + channel * 3,
                                                                  output + channel);
                    own += UACCEL_WEIGHTS(4) * count;
                }
                if (channel < p->channels) { /* the last four, some of them over again */
                    channel = p->channels - 4;
                    UACCEL_BLOCKED(uaccel_depthwise_blocked_quad)(p, taps, channel, own, constants + channel * 3,
                                                                  output + channel);
                }
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

/* Four results from `channel` on, wherever their channels of the input are. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_depthwise_times_blocked_quad)(
    const struct uaccel_depthwise_times_blocked *p, const UACCEL_ITEM *const *taps, uaccel_index channel,
    const UACCEL_FOUR *weights, const int32_t *constants, UACCEL_ITEM *output)
{
    const uaccel_index times = p->multiplier, first = channel / times, rest = channel - first * times;
    const uaccel_index at[4] = {first, rest + 1 < times ? 0 : (rest + 1) / times,
                                rest + 2 < times ? 0 : (rest + 2) / times, rest + 3 < times ? 0 : (rest + 3) / times};
    UACCEL_BLOCKED(uaccel_depthwise_blocked_four)(&p->windows, taps, at, weights, constants, output);
}

/* scratch and weights: the same. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_depthwise_times_blocked)(
    const struct uaccel_depthwise_times_blocked *p, const UACCEL_ITEM *input, const UACCEL_FOUR *weights,
    const int32_t *constants, UACCEL_ITEM *output, void *scratch)
{
    const struct uaccel_depthwise_conv2d_blocked *const q = &p->windows;
    const uaccel_index count = q->kernel_height * q->kernel_width, pixels = q->out_height * q->out_width;
    const UACCEL_ITEM **taps = scratch;
    UACCEL_ITEM *outside = (UACCEL_ITEM *)(taps + count);
    memset(outside, (int)q->input_zero_point, (size_t)q->channels * sizeof *outside);
    for (uaccel_index n = 0; n < q->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
            const UACCEL_FOUR *own = weights;
            const uaccel_index y = pixel / q->out_width, x = pixel % q->out_width;
            UACCEL_BLOCKED(uaccel_depthwise_blocked_list)(q, input, y * q->stride_height - q->pad_top,
                                                          x * q->stride_width - q->pad_left, outside, taps);
            for (uaccel_index channel = 0; channel < p->out_channels; channel += 4) {
                const uaccel_index at = channel + 4 <= p->out_channels ? channel : p->out_channels - 4;
                UACCEL_BLOCKED(uaccel_depthwise_times_blocked_quad)(p, taps, at, own, constants + at * 3, output + at);
                own += UACCEL_WEIGHTS(4) * count;
            }
            output += p->out_channels;
        }
        input += q->in_height * q->in_width * q->channels;
    }
}
