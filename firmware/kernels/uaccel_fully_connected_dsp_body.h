/* The kernel for one way to round; included by uaccel_fully_connected_dsp.h, once a way. */

UACCEL_SHARED void UACCEL_ROUNDED(uaccel_fully_connected_dsp_s8)(
    const struct uaccel_fully_connected_dsp *p, const int8_t *input, const int32_t *stream, int8_t *output)
{
    for (uaccel_index row = 0; row < p->rows; ++row) {
        const int32_t *block = stream;
        for (uaccel_index unit = 0; unit < p->units; unit += 8) {
            const uint64_t result = UACCEL_ROUNDED(uaccel_dsp_1x8)(input, input + p->depth, block, &p->finish);
            uaccel_dsp_store(output + unit, (uint32_t)result, p->units - unit);
            uaccel_dsp_store(output + unit + 4, (uint32_t)(result >> 32), p->units - unit - 4);
            block += p->block_words;
        }
        input += p->depth;
        output += p->units;
    }
}
