/* The kernel for one way to round; included by uaccel_depthwise_conv2d_dsp.h, once a way. */

/* All channels of one output pixel. */
UACCEL_KERNEL void UACCEL_ROUNDED(uaccel_depthwise_dsp_pixel)(const struct uaccel_depthwise_conv2d_dsp *p,
                                                              const int8_t *const *taps, const int32_t *stream,
                                                              int8_t *output)
{
    const int8_t *const *const end = taps + p->taps;
    const uaccel_index last = p->channels - 4;
    for (uaccel_index channel = 0; channel < last; channel += 4) {
        const uint32_t word = UACCEL_ROUNDED(uaccel_dsp_depthwise)(taps, end, stream, channel, &p->finish);
        memcpy(output + channel, &word, 4);
        stream += p->quad_words;
    }
    const uint32_t word = UACCEL_ROUNDED(uaccel_dsp_depthwise)(taps, end, stream, last, &p->finish);
    memcpy(output + last, &word, 4);
}

/* scratch: an address a tap, a pixel, and the ring. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_depthwise_conv2d_dsp_s8)(
    const struct uaccel_depthwise_conv2d_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output,
    void *scratch)
{
    const int8_t **taps = scratch;
    int8_t *const outside = (int8_t *)(taps + p->taps);
    int8_t *const ring = outside + p->channels;
    memset(outside, p->input_zero_point, (size_t)p->channels);
    for (uaccel_index tap = 0; tap < p->taps; ++tap) {
        taps[tap] = outside;
    }
    for (uaccel_index n = 0; n < p->batch; ++n) {
        uaccel_index known = 0;
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const uaccel_index top = y * p->stride_height - p->pad_top;
            const uaccel_index under = top + (p->kernel_height - 1) * p->dilation_height + 1;
            const uaccel_index end = under < p->in_height ? under : p->in_height;
            uaccel_index origin = 0;
            if (p->multiplier > 1) {
                uaccel_depthwise_dsp_repeat(p, input, known > top ? known : top, end, ring);
                known = end;
                origin = top > 0 ? top - top % p->ring : 0;
            }
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                uaccel_depthwise_dsp_list(p, p->multiplier > 1 ? ring : input, origin, top,
                                          x * p->stride_width - p->pad_left, outside, taps);
                UACCEL_ROUNDED(uaccel_depthwise_dsp_pixel)(p, taps, stream, output);
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * (p->channels / p->multiplier);
    }
}
