/* Fully connected for Arm's DSP extension, few units of many inputs: sums of a part of the inputs fit 24 bits, whatever
 * the weights are, and are added up. */
#ifndef UACCEL_FULLY_CONNECTED_DOTS_DSP_DEEP_H
#define UACCEL_FULLY_CONNECTED_DOTS_DSP_DEEP_H

#include "uaccel_dots_dsp.h"

enum { UACCEL_DOTS_PART = 512 }; /* inputs: 512 * 127 * 128 is below 2^23 */

/* Words of the weights of up to eight rows. */
UACCEL_KERNEL uaccel_index uaccel_words_dots_dsp_deep(uaccel_index filled, uaccel_index rows)
{
    return uaccel_words_dots_dsp(filled, rows);
}

/* Up to eight rows, whose weights are packed part by part. */
UACCEL_KERNEL void uaccel_rows_dots_dsp_deep(const int8_t *input, uaccel_index filled, const int32_t *weights,
                                             uaccel_index rows, int32_t *sums)
{
    memset(sums, 0, (size_t)rows * sizeof *sums);
    while (filled > 0) {
        const uaccel_index part = filled < UACCEL_DOTS_PART ? filled : UACCEL_DOTS_PART;
        int32_t more[8];
        uaccel_rows_dots_dsp(input, part, weights, rows, more);
        for (uaccel_index i = 0; i < rows; ++i) {
            sums[i] += more[i];
        }
        input += part;
        weights += uaccel_words_dots_dsp(part, rows);
        filled -= part;
    }
}

#define UACCEL_DOTS(name) name##_dots_dsp_deep
#include "uaccel_fully_connected_dots_body.h"

#endif
