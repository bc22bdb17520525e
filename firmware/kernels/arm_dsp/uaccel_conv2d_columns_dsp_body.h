/* The kernel for one way to round; included by uaccel_conv2d_columns_dsp.h, once a way. */

/* scratch: a pixel of zero points, and of each column that is widened together four bytes for each of its own. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_conv2d_columns_dsp_s8)(
    const struct uaccel_conv2d_columns_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output,
    void *scratch)
{
    const uaccel_index column = p->in_channels * p->kernel_height * 4, row = p->out_width * p->out_channels;
    int8_t *const outside = scratch, *const columns = outside + p->in_channels;
    memset(outside, p->input_zero_point, (size_t)p->in_channels);
    struct uaccel_dsp_job job = {
        .entry = ((column * p->kernel_width / 8 - 1) % UACCEL_DSP_LOOP) * UACCEL_DSP_STEP,
        .flags = p->finish.flags,
        .finish = &p->finish,
        .stop = stream + (p->out_channels >> 2) * p->quad_words,
        .patch_step = column * p->stride_width,
    };
    /* it takes a step before each pair, the first among them */
    job.patches = (int16_t *)((uintptr_t)columns - (uintptr_t)job.patch_step);
    job.end = job.patches + column * p->kernel_width / 2;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; y += 2) {
            const bool both = y + 1 < p->out_height;
            for (uaccel_index x = 0; x < p->out_width; x += p->chunk) {
                const uaccel_index rest = p->out_width - x;
                job.pairs = rest < p->chunk ? rest : p->chunk;
                uaccel_conv2d_columns_widen(p, input, y * p->stride_height - p->pad_top,
                                            both ? p->stride_height : 0, x * p->stride_width - p->pad_left,
                                            (job.pairs - 1) * p->stride_width + p->kernel_width, outside,
                                            (int16_t *)(void *)columns);
                job.first = output + y * row + x * p->out_channels;
                job.difference = both ? row : 0;
                UACCEL_ROUNDED(uaccel_dsp_2x4)(&job, stream);
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
        output += p->out_height * row;
    }
}
