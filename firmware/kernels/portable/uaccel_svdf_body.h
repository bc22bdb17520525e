/* The SVDF kernel for one type of state; included by uaccel_svdf.h, once a type. */

/* A filter's memory moves on by one frame, and the newest feature comes last. */
UACCEL_KERNEL void UACCEL_FN(uaccel_svdf_remember)(const struct uaccel_svdf *p, const int8_t *frame,
                                                   const int8_t *weights, int32_t bias, const UACCEL_ELEMENT *state,
                                                   UACCEL_ELEMENT *after)
{
    int32_t acc = bias;
    for (uaccel_index i = 0; i < p->depth; ++i) {
        acc = uaccel_add_wrapping(acc, (int32_t)frame[i] * weights[i]);
    }
    for (uaccel_index i = 0; i + 1 < p->memory; ++i) {
        after[i] = state[i + 1];
    }
    acc = uaccel_requantise(acc, p->feature_multiplier, p->feature_shift);
    /* Wraps, as the reference's does: it clamps before it adds the zero point. */
    after[p->memory - 1] = (UACCEL_ELEMENT)(uaccel_clamp(acc, p->state_min, p->state_max) + p->state_zero_point);
}

UACCEL_KERNEL void UACCEL_FN(uaccel_svdf)(const struct uaccel_svdf *p, const int8_t *input, const UACCEL_ELEMENT *state,
                                          const int8_t *feature_weights, const int32_t *feature_bias,
                                          const UACCEL_ELEMENT *time_weights, const int32_t *bias, int8_t *output,
                                          UACCEL_ELEMENT *after)
{
    for (uaccel_index b = 0; b < p->batch; ++b) {
        const UACCEL_ELEMENT *times = time_weights;
        for (uaccel_index u = 0; u < p->units; ++u) {
            int32_t acc = bias[u];
            for (uaccel_index r = 0; r < p->rank; ++r) {
                const uaccel_index filter = u * p->rank + r;
                UACCEL_FN(uaccel_svdf_remember)(p, input, feature_weights + filter * p->depth, feature_bias[filter],
                                                state, after);
                for (uaccel_index i = 0; i < p->memory; ++i) {
                    acc = uaccel_add_wrapping(acc, (int32_t)after[i] * times[i]);
                }
                state += p->memory;
                after += p->memory;
                times += p->memory;
            }
            acc = uaccel_requantise(acc, p->output_multiplier, p->output_shift);
            *output++ = (int8_t)uaccel_finish(acc, p->output_zero_point, INT8_MIN, INT8_MAX);
        }
        input += p->depth;
    }
}

#undef UACCEL_ELEMENT
#undef UACCEL_FN
