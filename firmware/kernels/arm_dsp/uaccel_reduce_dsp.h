/* Sums and means along the first of two axes for Arm's DSP extension: int8 and int16, four neighbours or more of the
 * second, by fours. */
#ifndef UACCEL_REDUCE_DSP_H
#define UACCEL_REDUCE_DSP_H

#include "uaccel_pool_dsp.h"
#include "uaccel_reduce.h"

#define UACCEL_REDUCE_DSP_BAND 255 /* how many bytes 16 bits can add up */

/* Of 4 * words neighbours what `count` rows add up to. */
UACCEL_KERNEL void uaccel_reduce_dsp_sums_s8(const int8_t *rows, uaccel_index count, uaccel_index pitch,
                                             uaccel_index words, int32_t *sums)
{
    while (count > 0) {
        const uaccel_index band = count < UACCEL_REDUCE_DSP_BAND ? count : UACCEL_REDUCE_DSP_BAND;
        const int8_t *const end = rows + band * pitch;
        uint32_t even[2] = {0}, odd[2] = {0};
        do {
            for (uaccel_index i = 0; i < words; ++i) {
                const uint32_t word = uaccel_dsp_load(rows + 4 * i);
                even[i] = uaccel_dsp_add_even(even[i], word);
                odd[i] = uaccel_dsp_add_odd(odd[i], word);
            }
            rows += pitch;
        } while (rows != end);
        for (uaccel_index i = 0; i < words; ++i) {
            sums[4 * i] += (int16_t)even[i];
            sums[4 * i + 1] += (int16_t)odd[i];
            sums[4 * i + 2] += (int32_t)even[i] >> 16;
            sums[4 * i + 3] += (int32_t)odd[i] >> 16;
        }
        count -= band;
    }
}

UACCEL_KERNEL void uaccel_reduce_dsp_sums_s16(const int16_t *rows, uaccel_index count, uaccel_index pitch,
                                              uaccel_index words, int32_t *sums)
{
    for (; words > 0; --words) {
        const int16_t *row = rows, *const end = rows + count * pitch;
        int32_t a = 0, b = 0, c = 0, d = 0;
        do {
            const uint32_t low = uaccel_dsp_load(row), high = uaccel_dsp_load(row + 2);
            a += (int16_t)low;
            b += (int32_t)low >> 16;
            c += (int16_t)high;
            d += (int32_t)high >> 16;
            row += pitch;
        } while (row != end);
        sums[0] = a;
        sums[1] = b;
        sums[2] = c;
        sums[3] = d;
        sums += 4;
        rows += 4;
    }
}

/* The last four again where they are no multiple of four. */
#define UACCEL_REDUCE_DSP(type, element)                                                                              \
    UACCEL_KERNEL void uaccel_reduce_dsp_some_##type(const struct uaccel_reduce *p, const element *rows,              \
                                                     uaccel_index words, element *output)                             \
    {                                                                                                                 \
        int32_t sums[8] = {0};                                                                                        \
        uaccel_reduce_dsp_sums_##type(rows, p->reduced_outer, p->middle, words, sums);                                \
        for (uaccel_index i = 0; i < 4 * words; ++i) {                                                                \
            output[i] = uaccel_reduce_requantise_##type(p, sums[i]);                                                  \
        }                                                                                                             \
    }                                                                                                                 \
                                                                                                                      \
    UACCEL_KERNEL void uaccel_reduce_sum_dsp_##type(const struct uaccel_reduce *p, const element *input,              \
                                                    element *output)                                                  \
    {                                                                                                                 \
        for (uaccel_index o = 0; o < p->outer; ++o) {                                                                 \
            uaccel_index c = 0;                                                                                       \
            for (; c + 8 <= p->middle; c += 8) {                                                                      \
                uaccel_reduce_dsp_some_##type(p, input + c, 2, output + c);                                           \
            }                                                                                                         \
            for (; c < p->middle; c += 4) {                                                                           \
                const uaccel_index at = c + 4 <= p->middle ? c : p->middle - 4;                                       \
                uaccel_reduce_dsp_some_##type(p, input + at, 1, output + at);                                         \
            }                                                                                                         \
            input += p->reduced_outer * p->middle;                                                                    \
            output += p->middle;                                                                                      \
        }                                                                                                             \
    }

UACCEL_REDUCE_DSP(s8, int8_t)
UACCEL_REDUCE_DSP(s16, int16_t)
#undef UACCEL_REDUCE_DSP

#endif
