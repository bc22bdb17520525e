/* The kernel for one type of state; included by uaccel_svdf_dots_body.h, once a type. */

/* Filters' memories move on by one frame, and the newest features of up to eight of them come last. */
UACCEL_KERNEL void UACCEL_FN(uaccel_svdf_remember)(const struct uaccel_svdf *p, const int32_t *features,
                                                   uaccel_index count, const UACCEL_ELEMENT *state,
                                                   UACCEL_ELEMENT *after)
{
    for (uaccel_index filter = 0; filter < count; ++filter) {
        uaccel_dots_move(state + 1, after, (p->memory - 1) * (uaccel_index)sizeof *after);
        /* Wraps, as the reference's does: it clamps before it adds the zero point. */
        after[p->memory - 1] =
            (UACCEL_ELEMENT)(uaccel_clamp(features[filter], p->state_min, p->state_max) + p->state_zero_point);
        after += p->memory;
        state += p->memory;
    }
}

/* scratch: a frame filled up, unless it is. */
UACCEL_KERNEL void UACCEL_FN(uaccel_svdf)(const struct uaccel_svdf_dots *p, const int8_t *input,
                                          const UACCEL_ELEMENT *state, const int32_t *feature_weights,
                                          const int32_t *feature_bias, const UACCEL_ELEMENT *time_weights,
                                          const int32_t *bias, int8_t *output, UACCEL_ELEMENT *after, void *scratch)
{
    const struct uaccel_svdf *const layer = &p->layer;
    const uaccel_index filters = layer->units * layer->rank, reach = layer->rank * layer->memory;
    const struct uaccel_dots_scale scale = {layer->feature_multiplier, layer->feature_shift};
    for (uaccel_index b = 0; b < layer->batch; ++b) {
        const int8_t *const frame = uaccel_dots_vector(input, layer->depth, p->filled, scratch);
        const int32_t *weights = feature_weights;
        for (uaccel_index filter = 0; filter < filters; filter += 8) {
            const uaccel_index count = filters - filter < 8 ? filters - filter : 8;
            int32_t sums[8];
            UACCEL_DOTS(uaccel_rows)(frame, p->filled, weights, count, sums);
            weights += UACCEL_DOTS(uaccel_words)(p->filled, count);
            UACCEL_DOTS(uaccel_scaled)(sums, feature_bias + filter, count, scale);
            UACCEL_FN(uaccel_svdf_remember)(layer, sums, count, state + filter * layer->memory,
                                            after + filter * layer->memory);
        }
        for (uaccel_index u = 0; u < layer->units; ++u) {
            int32_t acc = UACCEL_FN(uaccel_row)(after + u * reach, time_weights + u * reach, reach, bias[u]);
            acc = uaccel_requantise(acc, layer->output_multiplier, layer->output_shift);
            acc = uaccel_clamp(uaccel_add_wrapping(acc, layer->output_zero_point), INT8_MIN, INT8_MAX);
            *output++ = (int8_t)acc;
        }
        input += layer->depth;
        state += filters * layer->memory;
        after += filters * layer->memory;
    }
}
