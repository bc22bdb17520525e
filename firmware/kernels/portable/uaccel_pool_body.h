/* Means and maxima over windows for one element type; included by uaccel_pool.h, once a type. */

/* Means, halves away from zero. The front end has made sure that a sum fits 32 bits. */
UACCEL_KERNEL void UACCEL_FN(uaccel_pool_means)(const struct uaccel_pool *p, const UACCEL_ELEMENT *pixels,
                                                uaccel_index height, uaccel_index width, UACCEL_ELEMENT *output)
{
    for (uaccel_index c = 0; c < p->geo.in_channels; ++c) {
        int32_t sum = 0;
        for (uaccel_index y = 0; y < height; ++y) {
            for (uaccel_index x = 0; x < width; ++x) {
                sum += pixels[(y * p->geo.in_width + x) * p->geo.in_channels + c];
            }
        }
        sum = uaccel_rounded_mean(sum, height * width);
        output[c] = (UACCEL_ELEMENT)uaccel_clamp(sum, p->clamp_min, p->clamp_max);
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_pool_maxima)(const struct uaccel_pool *p, const UACCEL_ELEMENT *pixels,
                                                 uaccel_index height, uaccel_index width, UACCEL_ELEMENT *output)
{
    for (uaccel_index c = 0; c < p->geo.in_channels; ++c) {
        int32_t largest = p->clamp_min;
        for (uaccel_index y = 0; y < height; ++y) {
            for (uaccel_index x = 0; x < width; ++x) {
                const int32_t value = pixels[(y * p->geo.in_width + x) * p->geo.in_channels + c];
                largest = value > largest ? value : largest;
            }
        }
        output[c] = (UACCEL_ELEMENT)uaccel_clamp(largest, p->clamp_min, p->clamp_max);
    }
}

UACCEL_POOL(UACCEL_FN(uaccel_average_pool), UACCEL_ELEMENT, UACCEL_FN(uaccel_pool_means))
UACCEL_POOL(UACCEL_FN(uaccel_max_pool), UACCEL_ELEMENT, UACCEL_FN(uaccel_pool_maxima))

/* A tap of a window, the first of its channels. */
UACCEL_KERNEL const UACCEL_ELEMENT *UACCEL_FN(uaccel_window_tap)(const struct uaccel_window *p,
                                                                 const UACCEL_ELEMENT *input, uaccel_index y,
                                                                 uaccel_index x, uaccel_index ky, uaccel_index kx)
{
    const uaccel_index row = y * p->geo.stride_height - p->geo.pad_top + ky * p->geo.dilation_height;
    const uaccel_index column = x * p->geo.stride_width - p->geo.pad_left + kx * p->geo.dilation_width;
    return input + (row * p->geo.in_width + column) * p->geo.in_channels;
}

/* Every window of every channel; whether they have multipliers chooses between the two, and folds. */
UACCEL_KERNEL void UACCEL_FN(uaccel_window)(const struct uaccel_window *p, const UACCEL_ELEMENT *input,
                                            const int32_t *multipliers, UACCEL_ELEMENT *output, bool mean)
{
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index y = 0; y < p->geo.out_height; ++y) {
            const struct uaccel_window_taps rows = uaccel_window_rows(p, y, 0, 0);
            for (uaccel_index x = 0; x < p->geo.out_width; ++x) {
                const struct uaccel_window_taps columns = uaccel_window_columns(p, x, 0, 0);
                const int32_t multiplier = mean ? multipliers[uaccel_window_count(p, y, x) - p->least] : 0;
                for (uaccel_index c = 0; c < p->geo.in_channels; ++c) {
                    int32_t result = mean ? 0 : p->clamp_min;
                    for (uaccel_index ky = rows.first; ky < rows.last; ++ky) {
                        for (uaccel_index kx = columns.first; kx < columns.last; ++kx) {
                            const int32_t value = UACCEL_FN(uaccel_window_tap)(p, input, y, x, ky, kx)[c];
                            result = mean ? result + value - p->input_zero_point : value > result ? value : result;
                        }
                    }
                    *output++ = (UACCEL_ELEMENT)(mean ? uaccel_window_finish(p, result, multiplier)
                                                      : uaccel_clamp(result, p->clamp_min, p->clamp_max));
                }
            }
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_window_mean)(const struct uaccel_window *p, const UACCEL_ELEMENT *input,
                                                 const int32_t *multipliers, UACCEL_ELEMENT *output)
{
    UACCEL_FN(uaccel_window)(p, input, multipliers, output, true);
}

UACCEL_KERNEL void UACCEL_FN(uaccel_window_max)(const struct uaccel_window *p, const UACCEL_ELEMENT *input,
                                                UACCEL_ELEMENT *output)
{
    UACCEL_FN(uaccel_window)(p, input, NULL, output, false);
}
