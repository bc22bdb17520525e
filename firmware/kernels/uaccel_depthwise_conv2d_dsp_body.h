/* The kernel for one way to round; included by uaccel_depthwise_conv2d_dsp.h, once a way. */

/* scratch: an address a tap, and a pixel. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_depthwise_conv2d_dsp_s8)(
    const struct uaccel_depthwise_conv2d_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output,
    void *scratch)
{
    const int8_t **taps = scratch;
    int8_t *outside = (int8_t *)(taps + p->taps);
    memset(outside, p->input_zero_point, (size_t)p->channels);
    for (uaccel_index tap = 0; tap < p->taps; ++tap) {
        taps[tap] = outside;
    }
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                uaccel_depthwise_dsp_list(p, input, y * p->stride_height - p->pad_top,
                                          x * p->stride_width - p->pad_left, outside, taps);
                const int32_t *quad = stream;
                for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                    const uint32_t word = UACCEL_ROUNDED(uaccel_dsp_depthwise)(
                        taps, taps + p->taps, quad, channel, &p->finish);
                    memcpy(output, &word, 4);
                    output += 4;
                    quad += p->quad_words;
                }
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}
