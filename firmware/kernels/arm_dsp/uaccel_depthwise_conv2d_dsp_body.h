/* The kernel for one way to round; included by uaccel_depthwise_conv2d_dsp.h, once a way. */

/* scratch: an address a tap, a pixel, and the ring. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_depthwise_conv2d_dsp_s8)(
    const struct uaccel_depthwise_conv2d_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output,
    void *scratch)
{
    const int8_t **taps = scratch;
    int8_t *const outside = (int8_t *)(taps + p->taps);
    int8_t *const ring = outside + p->channels;
    memset(outside, p->input_zero_point, (size_t)p->channels);
    struct uaccel_dsp_depthwise_job job = {
        taps,
        (((p->taps - 1) & 3) + 1) * UACCEL_DSP_TAP,
        taps + p->taps + 1,
        p->finish.sign | p->finish.clamp * 2,
        &p->finish,
        output,
        p->channels - 4,
        {0},
    };
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
                UACCEL_ROUNDED(uaccel_dsp_depthwise)(&job, stream);
                job.output += p->channels;
            }
        }
        input += p->in_height * p->in_width * (p->channels / p->multiplier);
    }
}
