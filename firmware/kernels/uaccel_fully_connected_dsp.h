/* Fully connected for Arm's DSP extension: int8, rows whose length is a multiple of four, eight units at a time. */
#ifndef UACCEL_FULLY_CONNECTED_DSP_H
#define UACCEL_FULLY_CONNECTED_DSP_H

#include "uaccel_dsp.h"

struct uaccel_fully_connected_dsp {
    uaccel_index rows, depth, units;
    uaccel_index block_words; /* words of the stream for eight units */
    struct uaccel_dsp_finish finish;
};

UACCEL_SHARED void uaccel_fully_connected_dsp_s8(const struct uaccel_fully_connected_dsp *p, const int8_t *input,
                                                 const int32_t *stream, int8_t *output)
{
    for (uaccel_index row = 0; row < p->rows; ++row) {
        const int32_t *block = stream;
        for (uaccel_index unit = 0; unit < p->units; unit += 8) {
            const uint64_t result = uaccel_dsp_1x8(input, input + p->depth, block, &p->finish);
            uaccel_dsp_store(output + unit, (uint32_t)result, p->units - unit);
            uaccel_dsp_store(output + unit + 4, (uint32_t)(result >> 32), p->units - unit - 4);
            block += p->block_words;
        }
        input += p->depth;
        output += p->units;
    }
}

#endif
