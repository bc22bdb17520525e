/* The kernels for one way to round; included by uaccel_conv2d_blocked.h, once a way. */

/* scratch: two windows. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_conv2d_blocked)(
    const struct uaccel_conv2d_blocked *p, const UACCEL_ITEM *input, const UACCEL_FOUR *weights,
    const int32_t *constants, UACCEL_ITEM *output, void *scratch)
{
    const uaccel_index channels = p->geo.in_channels / (uaccel_index)sizeof *input;
    const uaccel_index depth = p->geo.kernel_height * p->geo.kernel_width * channels;
    const uaccel_index pixels = p->geo.out_height * p->geo.out_width;
    UACCEL_ITEM *first = scratch, *second = first + depth;
    uaccel_index column = 0;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            const bool both = pixel + 1 < pixels;
            UACCEL_ITEM *const result = output;
            uaccel_conv2d_blocked_window(p, input, pixel, first);
            if (both) {
                uaccel_conv2d_blocked_window(p, input, pixel + 1, second);
                output += uaccel_conv2d_blocked_step(p, &column);
            }
            UACCEL_BLOCKED(uaccel_blocked_channels)(&p->finish, first, both ? second : first, depth, weights,
                                                    constants, p->geo.out_channels, result, output);
            output += uaccel_conv2d_blocked_step(p, &column);
        }
        input += p->geo.in_height * p->geo.in_width * (p->in_pixel / (uaccel_index)sizeof *input);
    }
}

UACCEL_SHARED void UACCEL_BLOCKED(uaccel_rows_blocked)(
    const struct uaccel_rows_blocked *p, const UACCEL_ITEM *input, const UACCEL_FOUR *weights, const int32_t *constants,
    UACCEL_ITEM *output)
{
    for (uaccel_index row = 0; row < p->rows; row += 2) {
        const uaccel_index more = row + 1 < p->rows ? 1 : 0;
        UACCEL_BLOCKED(uaccel_blocked_channels)(&p->finish, input, input + more * p->depth, p->depth, weights,
                                                constants, p->out_channels, output,
                                                output + more * p->out_channels);
        input += (1 + more) * p->depth;
        output += (1 + more) * p->out_channels;
    }
}
