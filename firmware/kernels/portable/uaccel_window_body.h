/* Means and maxima over windows for one element type; included by uaccel_window.h, once a type. */

/* Where the window at y, x has its first tap, for one channel; outside the input where it is padded. */
#define UACCEL_TAP(p, y, x, ky, kx)                                                            \
    ((((y) * (p)->stride_height - (p)->pad_top + (ky) * (p)->dilation_height) * (p)->in_width + \
      (x) * (p)->stride_width - (p)->pad_left + (kx) * (p)->dilation_width) * (p)->channels)

UACCEL_KERNEL void UACCEL_FN(uaccel_window_mean)(const struct uaccel_window *p, const UACCEL_ELEMENT *input,
                                                 const int32_t *multipliers, UACCEL_ELEMENT *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_window_taps rows = uaccel_window_rows(p, y, 0, 0);
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_window_taps columns = uaccel_window_columns(p, x, 0, 0);
                const int32_t multiplier = multipliers[uaccel_window_count(p, y, x) - p->least];
                for (uaccel_index c = 0; c < p->channels; ++c) {
                    int32_t sum = 0;
                    for (uaccel_index ky = rows.first; ky < rows.last; ++ky) {
                        for (uaccel_index kx = columns.first; kx < columns.last; ++kx) {
                            sum += input[UACCEL_TAP(p, y, x, ky, kx) + c] - p->input_zero_point;
                        }
                    }
                    *output++ = (UACCEL_ELEMENT)uaccel_window_finish(p, sum, multiplier);
                }
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_window_max)(const struct uaccel_window *p, const UACCEL_ELEMENT *input,
                                                UACCEL_ELEMENT *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_window_taps rows = uaccel_window_rows(p, y, 0, 0);
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_window_taps columns = uaccel_window_columns(p, x, 0, 0);
                for (uaccel_index c = 0; c < p->channels; ++c) {
                    int32_t largest = p->clamp_min;
                    for (uaccel_index ky = rows.first; ky < rows.last; ++ky) {
                        for (uaccel_index kx = columns.first; kx < columns.last; ++kx) {
                            const int32_t value = input[UACCEL_TAP(p, y, x, ky, kx) + c];
                            largest = value > largest ? value : largest;
                        }
                    }
                    *output++ = (UACCEL_ELEMENT)uaccel_clamp(largest, p->clamp_min, p->clamp_max);
                }
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#undef UACCEL_TAP
