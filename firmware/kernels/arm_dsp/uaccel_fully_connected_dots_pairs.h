/* Fully connected for Arm's DSP extension, two units at a time: little code, for layers of few units. */
#ifndef UACCEL_FULLY_CONNECTED_DOTS_PAIRS_H
#define UACCEL_FULLY_CONNECTED_DOTS_PAIRS_H

#include "uaccel_dots_dsp.h"

/* Words of the weights of up to eight rows. */
UACCEL_KERNEL uaccel_index uaccel_words_dots_pairs(uaccel_index filled, uaccel_index rows)
{
    return filled / 2 * ((rows + 1) / 2);
}

/* Up to eight rows; behind an odd one are zeros. */
UACCEL_KERNEL void uaccel_rows_dots_pairs(const int8_t *input, uaccel_index filled, const int32_t *weights,
                                          uaccel_index rows, int32_t *sums)
{
    for (uaccel_index row = 0; row < rows; row += 2) {
        uaccel_pair_dots_dsp(input, input + filled, weights + row * filled / 4, sums + row);
    }
}

#define UACCEL_DOTS(name) name##_dots_pairs
#include "uaccel_fully_connected_dots_body.h"

#endif
