/* The kernels for one way to round; included by uaccel_conv2d_blocked.h, once a way. */

/* scratch: two windows. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_conv2d_blocked_s8)(
    const struct uaccel_conv2d_blocked *p, const int8_t *input, const UACCEL_FOUR *weights, const int32_t *constants,
    int8_t *output, void *scratch)
{
    const uaccel_index depth = p->kernel_height * p->kernel_width * p->in_channels;
    const uaccel_index pixels = p->out_height * p->out_width;
    int8_t *first = scratch, *second = first + depth;
    uaccel_index column = 0;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            const bool both = pixel + 1 < pixels;
            int8_t *const result = output;
            uaccel_conv2d_blocked_window(p, input, pixel, first);
            if (both) {
                uaccel_conv2d_blocked_window(p, input, pixel + 1, second);
                output = uaccel_conv2d_blocked_next(p, output, &column);
            }
            UACCEL_ROUNDED(uaccel_blocked_channels)(&p->finish, first, both ? second : first, depth, weights,
                                                    constants, p->out_channels, result, output);
            output = uaccel_conv2d_blocked_next(p, output, &column);
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

UACCEL_SHARED void UACCEL_ROUNDED(uaccel_rows_blocked_s8)(
    const struct uaccel_rows_blocked *p, const int8_t *input, const UACCEL_FOUR *weights, const int32_t *constants,
    int8_t *output)
{
    for (uaccel_index row = 0; row < p->rows; row += 2) {
        const uaccel_index more = row + 1 < p->rows ? 1 : 0;
        UACCEL_ROUNDED(uaccel_blocked_channels)(&p->finish, input, input + more * p->depth, p->depth, weights,
                                                constants, p->out_channels, output,
                                                output + more * p->out_channels);
        input += (1 + more) * p->depth;
        output += (1 + more) * p->out_channels;
    }
}
