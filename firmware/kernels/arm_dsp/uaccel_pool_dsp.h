/* Average and maximum over windows for Arm's DSP extension: NHWC, int8 and int16, four channels or more, by fours. */
#ifndef UACCEL_POOL_DSP_H
#define UACCEL_POOL_DSP_H

#include "uaccel_dsp.h"
#include "uaccel_pool_mean.h"

UACCEL_KERNEL uint32_t uaccel_pool_dsp_load(const void *place)
{
    uint32_t word;
    memcpy(&word, place, 4);
    return word;
}

/* The larger one of each byte. */
UACCEL_KERNEL uint32_t uaccel_pool_dsp_larger_s8(uint32_t a, uint32_t b)
{
    uint32_t difference;
    __asm__("ssub8 %1, %0, %2\n\t"
            "sel %0, %0, %2"
            : "+r"(a), "=&r"(difference)
            : "r"(b));
    return a;
}

/* The larger one of each half. */
UACCEL_KERNEL uint32_t uaccel_pool_dsp_larger_s16(uint32_t a, uint32_t b)
{
    uint32_t difference;
    __asm__("ssub16 %1, %0, %2\n\t"
            "sel %0, %0, %2"
            : "+r"(a), "=&r"(difference)
            : "r"(b));
    return a;
}

/* Bytes 0 and 2 of a word added to the halves of a sum. */
UACCEL_KERNEL uint32_t uaccel_pool_dsp_add_even(uint32_t sum, uint32_t word)
{
    __asm__("sxtab16 %0, %0, %1" : "+r"(sum) : "r"(word));
    return sum;
}

/* Bytes 1 and 3. */
UACCEL_KERNEL uint32_t uaccel_pool_dsp_add_odd(uint32_t sum, uint32_t word)
{
    __asm__("sxtab16 %0, %0, %1, ror #8" : "+r"(sum) : "r"(word));
    return sum;
}

UACCEL_KERNEL int32_t uaccel_pool_dsp_mean(const struct uaccel_pool *p, int32_t sum, struct uaccel_pool_count c,
                                           int32_t lowest, int32_t highest)
{
    int32_t mean;
    if (c.multiplier != 0) {
        __asm__("smmulr %0, %1, %2" : "=r"(mean) : "r"(sum * 2), "r"(c.multiplier));
    } else {
        mean = uaccel_rounded_mean(sum, c.count);
    }
    if (p->clamp_min > lowest) {
        mean = mean < p->clamp_min ? p->clamp_min : mean;
    }
    if (p->clamp_max < highest) {
        mean = mean > p->clamp_max ? p->clamp_max : mean;
    }
    return mean;
}

/* Four channels; `words` is 2: eight. Of bytes a word has four channels. */
UACCEL_KERNEL void uaccel_pool_dsp_max4_s8(const struct uaccel_pool *p, const int8_t *pixels, uaccel_index height,
                                           uaccel_index width, uaccel_index words, int8_t *output)
{
    const uint32_t lowest = (uint32_t)(p->clamp_min & 0xFF) * 0x01010101u;
    const uint32_t highest = (uint32_t)(p->clamp_max & 0xFF) * 0x01010101u;
    uint32_t largest[2] = {lowest, lowest};
    for (; height > 0; --height) {
        const int8_t *pixel = pixels, *end = pixels + width * p->channels;
        do {
            for (uaccel_index i = 0; i < words; ++i) {
                largest[i] = uaccel_pool_dsp_larger_s8(largest[i], uaccel_pool_dsp_load(pixel + 4 * i));
            }
            pixel += p->channels;
        } while (pixel != end);
        pixels += p->in_width * p->channels;
    }
    for (uaccel_index i = 0; i < words; ++i) {
        if (p->clamp_max < INT8_MAX) {
            /* the smaller one, of complements */
            largest[i] = ~uaccel_pool_dsp_larger_s8(~largest[i], ~highest);
        }
        memcpy(output + 4 * i, &largest[i], 4);
    }
}

/* Of halves a word has two channels. */
UACCEL_KERNEL void uaccel_pool_dsp_max4_s16(const struct uaccel_pool *p, const int16_t *pixels, uaccel_index height,
                                            uaccel_index width, uaccel_index words, int16_t *output)
{
    const uint32_t lowest = (uint32_t)(p->clamp_min & 0xFFFF) * 0x00010001u;
    const uint32_t highest = (uint32_t)(p->clamp_max & 0xFFFF) * 0x00010001u;
    uint32_t largest[4] = {lowest, lowest, lowest, lowest};
    for (; height > 0; --height) {
        const int16_t *pixel = pixels, *end = pixels + width * p->channels;
        do {
            for (uaccel_index i = 0; i < 2 * words; ++i) {
                largest[i] = uaccel_pool_dsp_larger_s16(largest[i], uaccel_pool_dsp_load(pixel + 2 * i));
            }
            pixel += p->channels;
        } while (pixel != end);
        pixels += p->in_width * p->channels;
    }
    for (uaccel_index i = 0; i < 2 * words; ++i) {
        if (p->clamp_max < INT16_MAX) {
            largest[i] = ~uaccel_pool_dsp_larger_s16(~largest[i], ~highest);
        }
        memcpy(output + 2 * i, &largest[i], 4);
    }
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
            const int8_t *pixel = pixels, *end = pixels + width * p->channels;
            do {
                for (uaccel_index i = 0; i < words; ++i) {
                    const uint32_t word = uaccel_pool_dsp_load(pixel + 4 * i);
                    even[i] = uaccel_pool_dsp_add_even(even[i], word);
                    odd[i] = uaccel_pool_dsp_add_odd(odd[i], word);
                }
                pixel += p->channels;
            } while (pixel != end);
            pixels += p->in_width * p->channels;
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
        const int16_t *pixel = pixels, *end = pixels + width * p->channels;
        do {
            const uint32_t first = uaccel_pool_dsp_load(pixel), second = uaccel_pool_dsp_load(pixel + 2);
            sums[0] += (int16_t)first;
            sums[1] += (int32_t)first >> 16;
            sums[2] += (int16_t)second;
            sums[3] += (int32_t)second >> 16;
            pixel += p->channels;
        } while (pixel != end);
        pixels += p->in_width * p->channels;
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
    for (uaccel_index c = 0; c < p->channels; c += 4) {
        const uaccel_index at = c + 4 <= p->channels ? c : p->channels - 4;
        uaccel_pool_dsp_mean4_s16(p, pixels + at, height, width, count, output + at);
    }
}

/* The same by eights and fours. */
UACCEL_KERNEL void uaccel_pool_dsp_mean_s8(const struct uaccel_pool *p, const int8_t *pixels, uaccel_index height,
                                           uaccel_index width, int8_t *output)
{
    const struct uaccel_pool_count count = uaccel_pool_count(height * width, UACCEL_POOL_MOST(8));
    uaccel_index c = 0;
    for (; c + 8 <= p->channels; c += 8) {
        uaccel_pool_dsp_mean4_s8(p, pixels + c, height, width, count, 2, output + c);
    }
    for (; c < p->channels; c += 4) {
        const uaccel_index at = c + 4 <= p->channels ? c : p->channels - 4;
        uaccel_pool_dsp_mean4_s8(p, pixels + at, height, width, count, 1, output + at);
    }
}

#define UACCEL_POOL_DSP_MAX(type, element)                                                                            \
    UACCEL_KERNEL void uaccel_pool_dsp_max_##type(const struct uaccel_pool *p, const element *pixels,                 \
                                                  uaccel_index height, uaccel_index width, element *output)           \
    {                                                                                                                 \
        uaccel_index c = 0;                                                                                           \
        for (; c + 8 <= p->channels; c += 8) {                                                                        \
            uaccel_pool_dsp_max4_##type(p, pixels + c, height, width, 2, output + c);                                 \
        }                                                                                                             \
        for (; c < p->channels; c += 4) {                                                                             \
            const uaccel_index at = c + 4 <= p->channels ? c : p->channels - 4;                                       \
            uaccel_pool_dsp_max4_##type(p, pixels + at, height, width, 1, output + at);                               \
        }                                                                                                             \
    }

UACCEL_POOL_DSP_MAX(s8, int8_t)
UACCEL_POOL_DSP_MAX(s16, int16_t)
#undef UACCEL_POOL_DSP_MAX

#define UACCEL_POOL uaccel_max_pool_dsp_s8
#define UACCEL_POOL_ELEMENT int8_t
#define UACCEL_POOL_WINDOW uaccel_pool_dsp_max_s8
#include "uaccel_pool_windows.h"

#define UACCEL_POOL uaccel_max_pool_dsp_s16
#define UACCEL_POOL_ELEMENT int16_t
#define UACCEL_POOL_WINDOW uaccel_pool_dsp_max_s16
#include "uaccel_pool_windows.h"

#define UACCEL_POOL uaccel_average_pool_dsp_s8
#define UACCEL_POOL_ELEMENT int8_t
#define UACCEL_POOL_WINDOW uaccel_pool_dsp_mean_s8
#include "uaccel_pool_windows.h"

#define UACCEL_POOL uaccel_average_pool_dsp_s16
#define UACCEL_POOL_ELEMENT int16_t
#define UACCEL_POOL_WINDOW uaccel_pool_dsp_mean_s16
#include "uaccel_pool_windows.h"

#endif
