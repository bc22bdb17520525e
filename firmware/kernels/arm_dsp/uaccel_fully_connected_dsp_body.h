/* The kernel for one way to round; included by uaccel_fully_connected_dsp.h, once a way and a depth. */

UACCEL_KERNEL struct uaccel_dsp_row UACCEL_ROUNDED(uaccel_fully_connected_dsp_job)(
    const struct uaccel_fully_connected_dsp *p, const int8_t *input, int8_t *output, void *scratch)
{
    const int8_t *const row = uaccel_dots_vector(input, p->depth, p->filled, scratch);
    const struct uaccel_dsp_row job = {
        row,
        row + p->filled,
        (((p->filled / 4 - 1) & 3) + 1) * UACCEL_DSP_STEPS,
        p->finish.sign | p->finish.clamp * 2,
        &p->finish,
        output,
        p->units,
        p->multiplier,
        p->offset,
        p->shift,
        {0},
    };
    return job;
}

/* scratch: the row in whole words, unless it is. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_fully_connected_dsp_s8)(
    const struct uaccel_fully_connected_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output,
    void *scratch)
{
    const struct uaccel_dsp_row job = UACCEL_ROUNDED(uaccel_fully_connected_dsp_job)(p, input, output, scratch);
#if UACCEL_DEEP
    struct uaccel_dsp_deep_row whole = {job, uaccel_dsp_ends(job.end, p->filled, *stream)};
    whole.job.end = whole.deep.first;
    UACCEL_ROUNDED(uaccel_dsp_1x8)(&whole.job, stream + 1);
#else
    UACCEL_ROUNDED(uaccel_dsp_1x8)(&job, stream);
#endif
}

#if !UACCEL_DEEP
/* Where all units have one scale. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_fully_connected_dsp_alike_s8)(
    const struct uaccel_fully_connected_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output,
    void *scratch)
{
    const struct uaccel_dsp_row job = UACCEL_ROUNDED(uaccel_fully_connected_dsp_job)(p, input, output, scratch);
    UACCEL_ROUNDED(uaccel_dsp_1x8_alike)(&job, stream);
}
#endif
