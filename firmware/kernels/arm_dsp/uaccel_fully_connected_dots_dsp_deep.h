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

/* Up to eight rows, whose weights are packed part by part; one or two behind fours are sums by themselves, of all
 * inputs. */
UACCEL_KERNEL void uaccel_rows_dots_dsp_deep(const int8_t *input, uaccel_index filled, const int32_t *weights,
                                             uaccel_index rows, int32_t *sums)
{
    const uaccel_index apart = (rows & 3) < 3 && filled >= UACCEL_DOTS_APART ? rows & 3 : 0, others = rows - apart;
    memset(sums, 0, (size_t)others * sizeof *sums);
    for (uaccel_index done = 0; others > 0 && done < filled; done += UACCEL_DOTS_PART) {
        const uaccel_index part = filled - done < UACCEL_DOTS_PART ? filled - done : UACCEL_DOTS_PART;
        int32_t more[8];
        uaccel_rows_dots_dsp(input + done, part, weights, others, more);
        for (uaccel_index i = 0; i < others; ++i) {
            sums[i] += more[i];
        }
        weights += uaccel_words_dots_dsp(part, others);
    }
    if (apart > 0) {
        uaccel_rows_dots_dsp(input, filled, weights, apart, sums + others);
    }
}

#define UACCEL_DOTS(name) name##_dots_dsp_deep
#include "uaccel_fully_connected_dots_body.h"

#endif
