/* The kernel for one way to round; included by uaccel_conv2d_dsp.h, once a way. */

/* All output channels of two pixels; the second may be the first again. */
UACCEL_KERNEL void UACCEL_ROUNDED(uaccel_conv2d_dsp_channels)(
    const struct uaccel_conv2d_dsp *p, const int32_t *stream, struct uaccel_dsp_job *job)
{
    const uaccel_index rest = p->out_channels & 3;
    if (p->out_channels >= 4) {
        job->quads = p->out_channels >> 2;
        UACCEL_ROUNDED(uaccel_dsp_2x4)(job, stream);
    }
    if (rest > 0) {
        int8_t last[8], *first = job->first, *second = job->second;
        job->first = last;
        job->second = last + 4;
        job->quads = 1;
        UACCEL_ROUNDED(uaccel_dsp_2x4)(job, stream + (p->out_channels >> 2) * p->quad_words);
        for (uaccel_index i = 0; i < rest; ++i) {
            first[i] = last[i];
            second[i] = last[4 + i];
        }
    }
}

/* scratch: for each byte of a window, filled up, four bytes; and two where there are borders or runs that end amid a
 * word. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_conv2d_dsp_s8)(
    const struct uaccel_conv2d_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output, void *scratch)
{
    const uaccel_index pixels = p->out_height * p->out_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        struct uaccel_conv2d_dsp_window first = {-p->pad_top, -p->pad_left, 0, output}, second = first;
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            const bool both = pixel + 1 < pixels;
            if (both) {
                uaccel_conv2d_dsp_next(p, &second);
            }
            const int16_t *end = uaccel_conv2d_dsp_patches(p, input, &first, &second, scratch);
            struct uaccel_dsp_job job = {
                scratch, end, &p->finish, first.output, second.output, 0,
            };
            UACCEL_ROUNDED(uaccel_conv2d_dsp_channels)(p, stream, &job);
            uaccel_conv2d_dsp_next(p, &second);
            first = second;
        }
        output = first.output;
        input += p->in_height * p->row;
    }
}
