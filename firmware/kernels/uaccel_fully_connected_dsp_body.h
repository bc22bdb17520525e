/* The kernel for one way to round; included by uaccel_fully_connected_dsp.h, once a way. */

/* All units of a row in whole words. */
UACCEL_SHARED void UACCEL_ROUNDED(uaccel_fully_connected_dsp_units)(
    const struct uaccel_fully_connected_dsp *p, const int8_t *row, const int32_t *stream, int8_t *output)
{
    for (uaccel_index unit = 0; unit < p->units; unit += 8) {
        const uint64_t result = UACCEL_ROUNDED(uaccel_dsp_1x8)(row, row + p->filled, stream, &p->finish);
        uaccel_dsp_store(output + unit, (uint32_t)result, p->units - unit);
        uaccel_dsp_store(output + unit + 4, (uint32_t)(result >> 32), p->units - unit - 4);
        stream += p->block_words;
    }
}

/* scratch: the row in whole words, unless it is. */
UACCEL_KERNEL void UACCEL_ROUNDED(uaccel_fully_connected_dsp_s8)(
    const struct uaccel_fully_connected_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output,
    void *scratch)
{
    const int8_t *const row = uaccel_dots_vector(input, p->depth, p->filled, scratch);
    UACCEL_ROUNDED(uaccel_fully_connected_dsp_units)(p, row, stream, output);
}
