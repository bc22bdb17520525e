/* The kernel for one type of state; included by uaccel_recurrent_body.h, once a type. */

/* scratch: a frame filled up, unless it is. */
UACCEL_KERNEL void UACCEL_FN(uaccel_svdf)(const struct uaccel_svdf_dots *p, const int8_t *input,
                                          const UACCEL_ELEMENT *state, const int32_t *feature_weights,
                                          const int32_t *feature_bias, const UACCEL_ELEMENT *time_weights,
                                          const int32_t *bias, int8_t *output, UACCEL_ELEMENT *after, void *scratch)
{
    const struct uaccel_svdf *const layer = &p->layer;
    const uaccel_index filters = layer->units * layer->rank;
    const struct uaccel_dots_scale scale = {layer->feature_multiplier, layer->feature_shift};
    for (uaccel_index b = 0; b < layer->batch; ++b) {
        const int8_t *const frame = uaccel_dots_vector(input, layer->depth, p->filled, scratch);
        const int32_t *weights = feature_weights;
        int32_t sums[8];
        /* every memory moves on by one frame; what comes last is written below */
        UACCEL_DOTS(uaccel_move)(state + 1, after, (filters * layer->memory - 1) * (uaccel_index)sizeof *after);
        for (uaccel_index filter = 0; filter < filters; filter += 8) {
            const uaccel_index count = filters - filter < 8 ? filters - filter : 8;
            UACCEL_DOTS(uaccel_rows)(frame, p->filled, weights, count, sums);
            weights += UACCEL_DOTS(uaccel_words)(p->filled, count);
            UACCEL_DOTS(uaccel_scaled)(sums, feature_bias + filter, count, scale);
            UACCEL_FN(uaccel_svdf_remember)(layer, sums, count, after + (filter + 1) * layer->memory - 1);
        }
        UACCEL_FN(uaccel_svdf_give)(layer, after, time_weights, bias, output);
        output += layer->units;
        input += layer->depth;
        state += filters * layer->memory;
        after += filters * layer->memory;
    }
}

#undef UACCEL_ELEMENT
#undef UACCEL_FN
