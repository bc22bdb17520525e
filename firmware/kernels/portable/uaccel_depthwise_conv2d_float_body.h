/* Depthwise convolution of floats; included once for each way to add up the taps of four channels, of one pixel
 * (UACCEL_FLOAT_CHANNELS1) and of two (UACCEL_FLOAT_CHANNELS2). */

/* All channels of `pixels` pixels, one or two. `whole` says which taps lie inside, and `first` is the first of them. */
UACCEL_KERNEL void UACCEL_FN(uaccel_depthwise_float_pixels)(const struct uaccel_depthwise_conv2d_float *p,
                                                            const struct uaccel_float_taps *whole, uaccel_index pixels,
                                                            uaccel_index first, const float *input,
                                                            const float *weights, const float *bias,
                                                            const float *added, float *output)
{
    const uaccel_index channels = p->geo.out_channels, window = p->geo.kernel_height * p->geo.kernel_width;
    const uaccel_index fours = p->multiplier == 1 ? channels / 4 * 4 : 0;
    struct uaccel_float_taps taps = *whole;
    taps.weight_row = 4 * whole->weight_row;
    for (uaccel_index c = 0; c < fours; c += 4) {
        float sums[8];
        if (pixels == 2) {
            UACCEL_FLOAT_CHANNELS2(&taps, input + c, weights + 4 * first, sums);
        } else {
            UACCEL_FLOAT_CHANNELS1(&taps, input + c, weights + 4 * first, sums);
        }
        for (uaccel_index i = 0; i < 4 * pixels; ++i) {
            const uaccel_index at = i / 4 * channels + c + i % 4;
            uaccel_depthwise_float_store(p, sums[i], bias[c + i % 4], added + at, output + at);
        }
        weights += 4 * window;
    }
    for (uaccel_index c = fours; c < channels; ++c) {
        for (uaccel_index i = 0; i < pixels; ++i) {
            const float *const source = input + c / p->multiplier + i * taps.pixel;
            const uaccel_index at = i * channels + c;
            const float sum = uaccel_float_channel(whole, source, weights + first);
            uaccel_depthwise_float_store(p, sum, bias[c], added + at, output + at);
        }
        weights += window;
    }
}

/* `added` has the shape of the output, and is not read unless `adds` says so. */
UACCEL_KERNEL void UACCEL_FN(uaccel_depthwise_conv2d_float)(const struct uaccel_depthwise_conv2d_float *p,
                                                            const float *input, const float *weights,
                                                            const float *bias, const float *added, float *output)
{
    const uaccel_index channels = p->geo.out_channels, in_row = p->geo.in_width * p->geo.in_channels;
    struct uaccel_float_taps taps;
    taps.row_step = p->geo.dilation_height * in_row;
    taps.column_step = p->geo.dilation_width * p->geo.in_channels;
    taps.pixel = p->geo.stride_width * p->geo.in_channels;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index y = 0; y < p->geo.out_height; ++y) {
            const uaccel_index top = y * p->geo.stride_height - p->geo.pad_top;
            const uaccel_index above = uaccel_float_skipped(top, p->geo.dilation_height);
            taps.rows = uaccel_float_inside(top, p->geo.dilation_height, p->geo.kernel_height, p->geo.in_height);
            for (uaccel_index x = 0; x < p->geo.out_width;) {
                const uaccel_index left = x * p->geo.stride_width - p->geo.pad_left;
                const uaccel_index reach =
                    left + p->geo.stride_width + (p->geo.kernel_width - 1) * p->geo.dilation_width;
                const uaccel_index pixels = left >= 0 && x + 1 < p->geo.out_width && reach < p->geo.in_width ? 2 : 1;
                const uaccel_index before = uaccel_float_skipped(left, p->geo.dilation_width);
                taps.columns = uaccel_float_inside(left, p->geo.dilation_width, p->geo.kernel_width, p->geo.in_width);
                taps.weight_row = p->geo.kernel_width - taps.columns;
                const uaccel_index row = top + above * p->geo.dilation_height;
                const uaccel_index column = left + before * p->geo.dilation_width;
                const bool any = taps.rows > 0 && taps.columns > 0;
                const float *const source = any ? input + row * in_row + column * p->geo.in_channels : input;
                UACCEL_FN(uaccel_depthwise_float_pixels)
                (p, &taps, pixels, any ? above * p->geo.kernel_width + before : 0, source, weights, bias, added,
                 output);
                output += pixels * channels;
                added += p->adds ? pixels * channels : 0;
                x += pixels;
            }
        }
        input += p->geo.in_height * in_row;
    }
}

#undef UACCEL_FN
#undef UACCEL_FLOAT_CHANNELS1
#undef UACCEL_FLOAT_CHANNELS2
