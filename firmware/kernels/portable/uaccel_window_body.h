/* Means and maxima over windows for one element type; included by uaccel_window.h, once a type. */

/* A tap of a window, the first of its channels. */
UACCEL_KERNEL const UACCEL_ELEMENT *UACCEL_FN(uaccel_window_tap)(const struct uaccel_window *p,
                                                                 const UACCEL_ELEMENT *input, uaccel_index y,
                                                                 uaccel_index x, uaccel_index ky, uaccel_index kx)
{
    const uaccel_index row = y * p->stride_height - p->pad_top + ky * p->dilation_height;
    return input + (row * p->in_width + x * p->stride_width - p->pad_left + kx * p->dilation_width) * p->channels;
}

/* Every window of every channel; whether they have multipliers chooses between the two, and folds. */
UACCEL_KERNEL void UACCEL_FN(uaccel_window)(const struct uaccel_window *p, const UACCEL_ELEMENT *input,
                                            const int32_t *multipliers, UACCEL_ELEMENT *output, bool mean)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_window_taps rows = uaccel_window_rows(p, y, 0, 0);
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_window_taps columns = uaccel_window_columns(p, x, 0, 0);
                const int32_t multiplier = mean ? multipliers[uaccel_window_count(p, y, x) - p->least] : 0;
                for (uaccel_index c = 0; c < p->channels; ++c) {
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
        input += p->in_height * p->in_width * p->channels;
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
