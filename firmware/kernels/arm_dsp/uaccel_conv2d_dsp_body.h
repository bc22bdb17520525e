/* The kernel for one way to round; included by uaccel_conv2d_dsp.h, once a way. */

/* All output channels of two pixels; the second may be the first again. */
UACCEL_KERNEL void UACCEL_ROUNDED(uaccel_conv2d_dsp_channels)(
    const struct uaccel_conv2d_dsp *p, const int32_t *stream, struct uaccel_dsp_job *job, uaccel_conv2d_dsp_last *others)
{
    const uaccel_index rest = p->geo.out_channels & 3;
    job->rows = p->copied > 0 ? 1 : p->geo.kernel_height;
    job->stop = stream + (p->geo.out_channels >> 2) * p->quad_words;
    if (p->geo.out_channels >= 4) {
        UACCEL_ROUNDED(uaccel_dsp_2x4)(job, stream);
        job->rows = 0;
    }
    if (rest > 0) {
        int8_t last[8], *const first = job->first + (p->geo.out_channels - rest);
        const uaccel_index difference = job->difference;
        stream = job->stop;
        job->first = last;
        job->difference = 4;
        job->stop = stream + p->quad_words;
        others(job, stream);
        for (uaccel_index i = 0; i < rest; ++i) {
            first[i] = last[i];
            first[i + difference] = last[4 + i];
        }
    }
}

/* scratch: for each byte of a window, filled up, four bytes; and two, and eight in all, where windows are copied. `others`
 * computes the channels behind fours. Compilers inline it where one form alone is used. */
static inline void UACCEL_ROUNDED(uaccel_conv2d_dsp_images)(
    const struct uaccel_conv2d_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output, void *scratch,
    uaccel_conv2d_dsp_last *others)
{
    const uaccel_index pixels = p->geo.out_height * p->geo.out_width;
    int16_t *const end = (int16_t *)scratch + p->window * 8;
    int8_t *const copies = (int8_t *)end;
    struct uaccel_dsp_job first = {
        .patches = scratch,
        .end = end,
        .entry = ((p->window * 2 - 1) % UACCEL_DSP_LOOP) * UACCEL_DSP_STEP,
        .flags = p->finish.flags,
        .finish = &p->finish,
        .advance = p->geo.stride_width * p->pixel * 2,
        .onward = p->out_pixel * 2 - p->geo.out_channels,
        .copy_b = copies + p->window * 4 + 4,
        .run = p->geo.kernel_width * p->geo.in_channels,
        .step = p->geo.dilation_height * p->row,
        .height = p->geo.kernel_height,
        .words = p->copied > 0 ? p->window : (p->geo.kernel_width * p->geo.in_channels + 3) >> 2,
    };
#if UACCEL_DEEP
    struct uaccel_dsp_deep_job whole = {first, uaccel_dsp_ends(end, p->window * 16, *stream++)};
    struct uaccel_dsp_job *const job = &whole.job;
    job->end = whole.deep.first;
#else
    struct uaccel_dsp_job *const job = &first;
#endif
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        struct uaccel_conv2d_dsp_window window = {-p->geo.pad_top, -p->geo.pad_left, 0, output};
        for (uaccel_index pixel = 0; pixel < pixels;) {
            const uaccel_index pairs = (p->geo.out_channels & 3) == 0 ? uaccel_conv2d_dsp_pairs(p, &window) : 0;
            const uaccel_index count = pairs > 0 ? pairs * 2 : (pixel + 1 < pixels ? 2 : 1);
            job->first = window.output;
            job->difference = p->out_pixel;
            if (pairs > 0) {
                job->pairs = pairs;
                job->a = input + window.top * p->row + window.left * p->pixel;
                job->b = job->a + p->geo.stride_width * p->pixel;
                job->over_a = job->over_b = p->copied > 0 ? 0 : job->step - job->run;
                job->copy_a = p->copied > 0 ? copies : NULL;
                uaccel_conv2d_dsp_next(p, &window, count);
            } else {
                job->pairs = 1;
                job->a = job->b = uaccel_conv2d_dsp_place(p, input, &window, copies, &job->over_a);
                job->over_b = job->over_a;
                job->copy_a = NULL;
                uaccel_conv2d_dsp_next(p, &window, 1);
                if (count == 1) {
                    job->difference = 0;
                } else {
                    job->difference = (uaccel_index)(window.output - job->first);
                    job->b = uaccel_conv2d_dsp_place(p, input, &window, job->copy_b, &job->over_b);
                    uaccel_conv2d_dsp_next(p, &window, 1);
                }
            }
            UACCEL_ROUNDED(uaccel_conv2d_dsp_channels)(p, stream, job, others);
            pixel += count;
        }
        output = window.output;
        input += p->geo.in_height * p->row;
    }
}

UACCEL_SHARED void UACCEL_ROUNDED(uaccel_conv2d_dsp_s8)(
    const struct uaccel_conv2d_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output, void *scratch)
{
    UACCEL_ROUNDED(uaccel_conv2d_dsp_images)(p, input, stream, output, scratch, UACCEL_ROUNDED(uaccel_dsp_2x4));
}

/* With one or two channels behind fours, which are rows by themselves. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_conv2d_dsp_s8_pair)(
    const struct uaccel_conv2d_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output, void *scratch)
{
    UACCEL_ROUNDED(uaccel_conv2d_dsp_images)(p, input, stream, output, scratch, UACCEL_ROUNDED(uaccel_dsp_2x2));
}
