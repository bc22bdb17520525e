/* The pooling kernels for one element type; included by uaccel_pool.h, once a type. */

/* The mean of one channel, halves away from zero. The front end has made sure that the sum fits 32 bits. */
UACCEL_KERNEL int32_t UACCEL_FN(uaccel_pool_mean)(const struct uaccel_pool *p, const UACCEL_ELEMENT *channel,
                                                  struct uaccel_pool_span rows, struct uaccel_pool_span columns)
{
    const int32_t count = (rows.last - rows.first) * (columns.last - columns.first);
    int32_t sum = 0;
    for (uaccel_index y = rows.first; y < rows.last; ++y) {
        for (uaccel_index x = columns.first; x < columns.last; ++x) {
            sum += channel[(y * p->in_width + x) * p->channels];
        }
    }
    return uaccel_rounded_mean(sum, count);
}

UACCEL_KERNEL int32_t UACCEL_FN(uaccel_pool_largest)(const struct uaccel_pool *p, const UACCEL_ELEMENT *channel,
                                                     struct uaccel_pool_span rows, struct uaccel_pool_span columns)
{
    int32_t largest = p->clamp_min;
    for (uaccel_index y = rows.first; y < rows.last; ++y) {
        for (uaccel_index x = columns.first; x < columns.last; ++x) {
            const int32_t value = channel[(y * p->in_width + x) * p->channels];
            largest = value > largest ? value : largest;
        }
    }
    return largest;
}

/* Every window of every channel; `average` chooses between the two, and folds. */
UACCEL_KERNEL void UACCEL_FN(uaccel_pool)(const struct uaccel_pool *p, const UACCEL_ELEMENT *input,
                                          UACCEL_ELEMENT *output, bool average)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_pool_span rows =
                uaccel_pool_span(y * p->stride_height - p->pad_top, p->window_height, p->in_height);
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_pool_span columns =
                    uaccel_pool_span(x * p->stride_width - p->pad_left, p->window_width, p->in_width);
                for (uaccel_index c = 0; c < p->channels; ++c) {
                    const int32_t value = average ? UACCEL_FN(uaccel_pool_mean)(p, input + c, rows, columns)
                                                  : UACCEL_FN(uaccel_pool_largest)(p, input + c, rows, columns);
                    *output++ = (UACCEL_ELEMENT)uaccel_clamp(value, p->clamp_min, p->clamp_max);
                }
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_average_pool)(const struct uaccel_pool *p, const UACCEL_ELEMENT *input,
                                                  UACCEL_ELEMENT *output)
{
    UACCEL_FN(uaccel_pool)(p, input, output, true);
}

UACCEL_KERNEL void UACCEL_FN(uaccel_max_pool)(const struct uaccel_pool *p, const UACCEL_ELEMENT *input,
                                              UACCEL_ELEMENT *output)
{
    UACCEL_FN(uaccel_pool)(p, input, output, false);
}
