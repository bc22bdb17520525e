/* Means and maxima over windows, and sums along an axis, for Arm's DSP extension. */
#ifndef UACCEL_POOL_DSP_H
#define UACCEL_POOL_DSP_H

#include "uaccel_dsp.h"
#include "uaccel_pool_mean.h"
#include "uaccel_reduce.h"

/* Average and maximum over windows for Arm's DSP extension: NHWC, int8 and int16, four channels or more, by fours. */

/* The larger one of each byte, or of each half. */
#define UACCEL_POOL_DSP_LARGER(type, subtract)                                                   \
    UACCEL_KERNEL uint32_t uaccel_pool_dsp_larger_##type(uint32_t a, uint32_t b)                 \
    {                                                                                            \
        uint32_t difference;                                                                     \
        __asm__(subtract " %1, %0, %2\n\tsel %0, %0, %2" : "+r"(a), "=&r"(difference) : "r"(b)); \
        return a;                                                                                \
    }
UACCEL_POOL_DSP_LARGER(s8, "ssub8")
UACCEL_POOL_DSP_LARGER(s16, "ssub16")
#undef UACCEL_POOL_DSP_LARGER

UACCEL_KERNEL int32_t uaccel_pool_dsp_mean(const struct uaccel_pool *p, int32_t sum, struct uaccel_pool_count c,
                                           int32_t lowest, int32_t highest)
{
    const int32_t mean = c.multiplier != 0 ? uaccel_dsp_high(sum * 2, c.multiplier) : uaccel_rounded_mean(sum, c.count);
    return uaccel_dsp_bounded(mean, p->clamp_min, p->clamp_max, lowest, highest);
}

/* Bytes are added up in halves, and those, before they overflow, in words. */
UACCEL_KERNEL void uaccel_pool_dsp_mean4_s8(const struct uaccel_pool *p, const int8_t *pixels, uaccel_index height,
                                            uaccel_index width, struct uaccel_pool_count c, uaccel_index words,
                                            int8_t *output)
{
    const uaccel_index band = uaccel_pool_band(height, width);
    int32_t sums[8] = {0};
    for (; height > 0; height -= band) {
        uint32_t even[2] = {0}, odd[2] = {0};
        for (uaccel_index y = 0; y < band; ++y) {
            const int8_t *pixel = pixels, *end = pixels + width * p->geo.in_channels;
            do {
                for (uaccel_index i = 0; i < words; ++i) {
                    const uint32_t word = uaccel_dsp_load(pixel + 4 * i);
                    even[i] = uaccel_dsp_add_even(even[i], word);
                    odd[i] = uaccel_dsp_add_odd(odd[i], word);
                }
                pixel += p->geo.in_channels;
            } while (pixel != end);
            pixels += p->geo.in_width * p->geo.in_channels;
        }
        for (uaccel_index i = 0; i < words; ++i) {
            sums[4 * i] += (int16_t)even[i];
            sums[4 * i + 1] += (int16_t)odd[i];
            sums[4 * i + 2] += (int32_t)even[i] >> 16;
            sums[4 * i + 3] += (int32_t)odd[i] >> 16;
        }
    }
    for (uaccel_index i = 0; i < 4 * words; ++i) {
        output[i] = (int8_t)uaccel_pool_dsp_mean(p, sums[i], c, INT8_MIN, INT8_MAX);
    }
}

/* By fours alone: sums of eight channels are more than there are registers. */
UACCEL_KERNEL void uaccel_pool_dsp_mean4_s16(const struct uaccel_pool *p, const int16_t *pixels, uaccel_index height,
                                             uaccel_index width, struct uaccel_pool_count c, int16_t *output)
{
    int32_t sums[4] = {0};
    for (; height > 0; --height) {
        const int16_t *pixel = pixels, *end = pixels + width * p->geo.in_channels;
        do {
            const uint32_t first = uaccel_dsp_load(pixel), second = uaccel_dsp_load(pixel + 2);
            sums[0] += (int16_t)first;
            sums[1] += (int32_t)first >> 16;
            sums[2] += (int16_t)second;
            sums[3] += (int32_t)second >> 16;
            pixel += p->geo.in_channels;
        } while (pixel != end);
        pixels += p->geo.in_width * p->geo.in_channels;
    }
    for (uaccel_index i = 0; i < 4; ++i) {
        output[i] = (int16_t)uaccel_pool_dsp_mean(p, sums[i], c, INT16_MIN, INT16_MAX);
    }
}

/* All channels of a window: the last four over again where they are no multiple of four. */
UACCEL_KERNEL void uaccel_pool_dsp_mean_s16(const struct uaccel_pool *p, const int16_t *pixels, uaccel_index height,
                                            uaccel_index width, int16_t *output)
{
    const struct uaccel_pool_count count = uaccel_pool_count(height * width, UACCEL_POOL_MOST(16));
    for (uaccel_index c = 0; c < p->geo.in_channels; c += 4) {
        const uaccel_index at = c + 4 <= p->geo.in_channels ? c : p->geo.in_channels - 4;
        uaccel_pool_dsp_mean4_s16(p, pixels + at, height, width, count, output + at);
    }
}

/* The same by eights and fours. */
UACCEL_KERNEL void uaccel_pool_dsp_mean_s8(const struct uaccel_pool *p, const int8_t *pixels, uaccel_index height,
                                           uaccel_index width, int8_t *output)
{
    const struct uaccel_pool_count count = uaccel_pool_count(height * width, UACCEL_POOL_MOST(8));
    uaccel_index c = 0;
    for (; c + 8 <= p->geo.in_channels; c += 8) {
        uaccel_pool_dsp_mean4_s8(p, pixels + c, height, width, count, 2, output + c);
    }
    for (; c < p->geo.in_channels; c += 4) {
        const uaccel_index at = c + 4 <= p->geo.in_channels ? c : p->geo.in_channels - 4;
        uaccel_pool_dsp_mean4_s8(p, pixels + at, height, width, count, 1, output + at);
    }
}

#define UACCEL_BODY "uaccel_pool_dsp_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

UACCEL_POOL(uaccel_max_pool_dsp_s8, int8_t, uaccel_pool_dsp_max_s8)
UACCEL_POOL(uaccel_max_pool_dsp_s16, int16_t, uaccel_pool_dsp_max_s16)
UACCEL_POOL(uaccel_average_pool_dsp_s8, int8_t, uaccel_pool_dsp_mean_s8)
UACCEL_POOL(uaccel_average_pool_dsp_s16, int16_t, uaccel_pool_dsp_mean_s16)

/* Sums and means along the first of two axes for Arm's DSP extension: int8 and int16, four neighbours or more of the
 * second, by fours. */

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
#define UACCEL_REDUCE_DSP(type, element)                                                                 \
    UACCEL_KERNEL void uaccel_reduce_dsp_some_##type(const struct uaccel_reduce *p, const element *rows, \
                                                     uaccel_index words, element *output)                \
    {                                                                                                    \
        int32_t sums[8] = {0};                                                                           \
        uaccel_reduce_dsp_sums_##type(rows, p->reduced_outer, p->middle, words, sums);                   \
        for (uaccel_index i = 0; i < 4 * words; ++i) {                                                   \
            output[i] = uaccel_reduce_requantise_##type(p, sums[i]);                                     \
        }                                                                                                \
    }                                                                                                    \
                                                                                                         \
    UACCEL_KERNEL void uaccel_reduce_sum_dsp_##type(const struct uaccel_reduce *p, const element *input, \
                                                    element *output)                                     \
    {                                                                                                    \
        for (uaccel_index o = 0; o < p->outer; ++o) {                                                    \
            uaccel_index c = 0;                                                                          \
            for (; c + 8 <= p->middle; c += 8) {                                                         \
                uaccel_reduce_dsp_some_##type(p, input + c, 2, output + c);                              \
            }                                                                                            \
            for (; c < p->middle; c += 4) {                                                              \
                const uaccel_index at = c + 4 <= p->middle ? c : p->middle - 4;                          \
                uaccel_reduce_dsp_some_##type(p, input + at, 1, output + at);                            \
            }                                                                                            \
            input += p->reduced_outer * p->middle;                                                       \
            output += p->middle;                                                                         \
        }                                                                                                \
    }

UACCEL_REDUCE_DSP(s8, int8_t)
UACCEL_REDUCE_DSP(s16, int16_t)
#undef UACCEL_REDUCE_DSP

#endif
