/* Means and maxima over windows, and sums along an axis, for Arm Helium. */
#ifndef UACCEL_POOL_HELIUM_H
#define UACCEL_POOL_HELIUM_H

#include "uaccel_dots_helium.h"
#include "uaccel_helium.h"
#include "uaccel_pool_mean.h"
#include "uaccel_reduce.h"

/* Average and maximum over windows for Arm Helium: NHWC, int8 and int16, any number of channels. */

/* The largest ones of a vector's channels; `whole`: it has all of its lanes. */
#define UACCEL_POOL_HELIUM_MAX(type, element, vector, most, ctp, dup)                                             \
    UACCEL_KERNEL void uaccel_pool_helium_max1_##type(const struct uaccel_pool *p, const element *pixels,         \
                                                      uaccel_index height, uaccel_index width, bool whole,        \
                                                      mve_pred16_t some, element *output)                         \
    {                                                                                                             \
        vector largest = dup((element)p->clamp_min);                                                              \
        for (; height > 0; --height) {                                                                            \
            const element *pixel = pixels;                                                                        \
            for (uaccel_index x = width; x > 0; --x) {                                                            \
                largest = vmaxq(largest, whole ? vld1q(pixel) : vld1q_z(pixel, some));                            \
                pixel += p->geo.in_channels;                                                                      \
            }                                                                                                     \
            pixels += p->geo.in_width * p->geo.in_channels;                                                       \
        }                                                                                                         \
        if (p->clamp_max < (most)) {                                                                              \
            largest = vminq(largest, dup((element)p->clamp_max));                                                 \
        }                                                                                                         \
        vst1q_p(output, largest, some);                                                                           \
    }                                                                                                             \
                                                                                                                  \
    UACCEL_KERNEL void uaccel_pool_helium_max_##type(const struct uaccel_pool *p, const element *pixels,          \
                                                     uaccel_index height, uaccel_index width, element *output)    \
    {                                                                                                             \
        const uaccel_index lanes = 16 / (uaccel_index)sizeof(element);                                            \
        uaccel_index c = 0;                                                                                       \
        for (; c + lanes <= p->geo.in_channels; c += lanes) {                                                     \
            uaccel_pool_helium_max1_##type(p, pixels + c, height, width, true, ctp((uint32_t)lanes), output + c); \
        }                                                                                                         \
        if (c < p->geo.in_channels) {                                                                             \
            const mve_pred16_t some = ctp((uint32_t)(p->geo.in_channels - c));                                    \
            uaccel_pool_helium_max1_##type(p, pixels + c, height, width, false, some, output + c);                \
        }                                                                                                         \
    }

UACCEL_POOL_HELIUM_MAX(s8, int8_t, int8x16_t, INT8_MAX, vctp8q, vdupq_n_s8)
UACCEL_POOL_HELIUM_MAX(s16, int16_t, int16x8_t, INT16_MAX, vctp16q, vdupq_n_s16)
#undef UACCEL_POOL_HELIUM_MAX

/* The means of four channels. */
UACCEL_KERNEL int32x4_t uaccel_pool_helium_mean4(int32x4_t sum, struct uaccel_pool_count c)
{
    if (c.multiplier != 0) {
        return vqrdmulhq_n_s32(sum, c.multiplier);
    }
    int32_t means[4];
    vst1q(means, sum);
    for (uaccel_index i = 0; i < 4; ++i) {
        means[i] = uaccel_rounded_mean(means[i], c.count);
    }
    return vld1q(means);
}

/* Those of eight, of which even ones and odd ones were added up apart, as bytes. */
UACCEL_KERNEL void uaccel_pool_helium_finish_s8(const struct uaccel_pool *p, const int32x4_t *sums,
                                                struct uaccel_pool_count c, mve_pred16_t some, int8_t *output)
{
    int16x8_t mean = vreinterpretq_s16_s32(uaccel_pool_helium_mean4(sums[0], c));
    mean = vmovntq_s32(mean, uaccel_pool_helium_mean4(sums[1], c));
    if (p->clamp_min > INT8_MIN || p->clamp_max < INT8_MAX) {
        mean = vmaxq(mean, vdupq_n_s16((int16_t)p->clamp_min));
        mean = vminq(mean, vdupq_n_s16((int16_t)p->clamp_max));
    }
    vstrbq_p_s16(output, mean, some);
}

/* Sixteen channels where they are `whole`, else up to eight. Bytes are added up in 16 bits, and before those overflow,
 * in 32: even channels and odd ones apart. */
UACCEL_KERNEL void uaccel_pool_helium_mean1_s8(const struct uaccel_pool *p, const int8_t *pixels, uaccel_index height,
                                               uaccel_index width, struct uaccel_pool_count c, bool whole,
                                               mve_pred16_t some, int8_t *output)
{
    const uaccel_index band = uaccel_pool_band(height, width);
    int32x4_t sums[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
    for (; height > 0; height -= band) {
        int16x8_t low = vdupq_n_s16(0), high = vdupq_n_s16(0);
        for (uaccel_index y = 0; y < band; ++y) {
            const int8_t *pixel = pixels;
            for (uaccel_index x = width; x > 0; --x) {
                low = vaddq_s16(low, whole ? vldrbq_s16(pixel) : vldrbq_z_s16(pixel, some));
                if (whole) {
                    high = vaddq_s16(high, vldrbq_s16(pixel + 8));
                }
                pixel += p->geo.in_channels;
            }
            pixels += p->geo.in_width * p->geo.in_channels;
        }
        sums[0] = vaddq_s32(sums[0], vmovlbq_s16(low));
        sums[1] = vaddq_s32(sums[1], vmovltq_s16(low));
        sums[2] = vaddq_s32(sums[2], vmovlbq_s16(high));
        sums[3] = vaddq_s32(sums[3], vmovltq_s16(high));
    }
    uaccel_pool_helium_finish_s8(p, sums, c, some, output);
    if (whole) {
        uaccel_pool_helium_finish_s8(p, sums + 2, c, some, output + 8);
    }
}

/* Sixteen channels where they are `whole`, else up to four. */
UACCEL_KERNEL void uaccel_pool_helium_mean1_s16(const struct uaccel_pool *p, const int16_t *pixels,
                                                uaccel_index height, uaccel_index width, struct uaccel_pool_count c,
                                                bool whole, mve_pred16_t some, int16_t *output)
{
    int32x4_t sum0 = vdupq_n_s32(0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (; height > 0; --height) {
        const int16_t *pixel = pixels;
        for (uaccel_index x = width; x > 0; --x) {
            sum0 = vaddq_s32(sum0, whole ? vldrhq_s32(pixel) : vldrhq_z_s32(pixel, some));
            if (whole) {
                sum1 = vaddq_s32(sum1, vldrhq_s32(pixel + 4));
                sum2 = vaddq_s32(sum2, vldrhq_s32(pixel + 8));
                sum3 = vaddq_s32(sum3, vldrhq_s32(pixel + 12));
            }
            pixel += p->geo.in_channels;
        }
        pixels += p->geo.in_width * p->geo.in_channels;
    }
    const int32x4_t sums[4] = {sum0, sum1, sum2, sum3};
    for (uaccel_index i = 0; i < (whole ? 4 : 1); ++i) {
        int32x4_t mean = uaccel_pool_helium_mean4(sums[i], c);
        if (p->clamp_min > INT16_MIN || p->clamp_max < INT16_MAX) {
            mean = vminq(vmaxq(mean, vdupq_n_s32(p->clamp_min)), vdupq_n_s32(p->clamp_max));
        }
        vstrhq_p_s32(output + 4 * i, mean, some);
    }
}

/* All channels of a window: by sixteens, and then by what `ctp` counts. */
#define UACCEL_POOL_HELIUM_MEAN(type, element, lanes, ctp)                                                      \
    UACCEL_KERNEL void uaccel_pool_helium_mean_##type(const struct uaccel_pool *p, const element *pixels,       \
                                                      uaccel_index height, uaccel_index width, element *output) \
    {                                                                                                           \
        const uaccel_index most = UACCEL_POOL_MOST(8 * sizeof(element));                                        \
        const struct uaccel_pool_count count = uaccel_pool_count(height * width, most);                         \
        uaccel_index c = 0;                                                                                     \
        for (; c + 16 <= p->geo.in_channels; c += 16) {                                                         \
            uaccel_pool_helium_mean1_##type(p, pixels + c, height, width, count, true, ctp(lanes), output + c); \
        }                                                                                                       \
        for (; c < p->geo.in_channels; c += lanes) {                                                            \
            const mve_pred16_t some = ctp((uint32_t)(p->geo.in_channels - c));                                  \
            uaccel_pool_helium_mean1_##type(p, pixels + c, height, width, count, false, some, output + c);      \
        }                                                                                                       \
    }

UACCEL_POOL_HELIUM_MEAN(s8, int8_t, 8, vctp16q)
UACCEL_POOL_HELIUM_MEAN(s16, int16_t, 4, vctp32q)
#undef UACCEL_POOL_HELIUM_MEAN

UACCEL_POOL(uaccel_max_pool_helium_s8, int8_t, uaccel_pool_helium_max_s8)
UACCEL_POOL(uaccel_max_pool_helium_s16, int16_t, uaccel_pool_helium_max_s16)
UACCEL_POOL(uaccel_average_pool_helium_s8, int8_t, uaccel_pool_helium_mean_s8)
UACCEL_POOL(uaccel_average_pool_helium_s16, int16_t, uaccel_pool_helium_mean_s16)

/* Sums and means along the first of two axes for Arm Helium: int8 and int16, eight neighbours of the second at a
 * time. */

#define UACCEL_REDUCE_HELIUM_BAND 255 /* how many bytes 16 bits can add up */

UACCEL_KERNEL int32x4_t uaccel_reduce_helium_four(const struct uaccel_reduce *p, int32x4_t sum, int32_t lowest,
                                                  int32_t highest)
{
    sum = uaccel_requantise_helium(vaddq_n_s32(sum, p->offset), p->multiplier, p->shift);
    sum = vaddq_n_s32(sum, p->output_zero_point);
    return vminq_s32(vmaxq_s32(sum, vdupq_n_s32(lowest)), vdupq_n_s32(highest));
}

/* Even neighbours and odd ones apart, as halves in turn. */
UACCEL_KERNEL int16x8_t uaccel_reduce_helium_eight(const struct uaccel_reduce *p, int32x4_t even, int32x4_t odd,
                                                   int32_t lowest, int32_t highest)
{
    const int16x8_t low = vreinterpretq_s16_s32(uaccel_reduce_helium_four(p, even, lowest, highest));
    return vmovntq_s32(low, uaccel_reduce_helium_four(p, odd, lowest, highest));
}

/* `whole`: all eight. */
UACCEL_KERNEL void uaccel_reduce_helium_some_s8(const struct uaccel_reduce *p, const int8_t *rows, bool whole,
                                                mve_pred16_t some, int8_t *output)
{
    int32x4_t even = vdupq_n_s32(0), odd = vdupq_n_s32(0);
    for (uaccel_index left = p->reduced_outer; left > 0; left -= UACCEL_REDUCE_HELIUM_BAND) {
        int16x8_t sum = vdupq_n_s16(0);
        for (uaccel_index i = left < UACCEL_REDUCE_HELIUM_BAND ? left : UACCEL_REDUCE_HELIUM_BAND; i > 0; --i) {
            sum = vaddq_s16(sum, whole ? vldrbq_s16(rows) : vldrbq_z_s16(rows, some));
            rows += p->middle;
        }
        even = vaddq_s32(even, vmovlbq_s16(sum));
        odd = vaddq_s32(odd, vmovltq_s16(sum));
    }
    vstrbq_p_s16(output, uaccel_reduce_helium_eight(p, even, odd, INT8_MIN, INT8_MAX), some);
}

UACCEL_KERNEL void uaccel_reduce_helium_some_s16(const struct uaccel_reduce *p, const int16_t *rows, bool whole,
                                                 mve_pred16_t some, int16_t *output)
{
    int32x4_t even = vdupq_n_s32(0), odd = vdupq_n_s32(0);
    for (uaccel_index i = p->reduced_outer; i > 0; --i) {
        const int16x8_t row = whole ? vldrhq_s16(rows) : vldrhq_z_s16(rows, some);
        even = vaddq_s32(even, vmovlbq_s16(row));
        odd = vaddq_s32(odd, vmovltq_s16(row));
        rows += p->middle;
    }
    vstrhq_p_s16(output, uaccel_reduce_helium_eight(p, even, odd, INT16_MIN, INT16_MAX), some);
}

#define UACCEL_REDUCE_HELIUM(type, element)                                                                 \
    UACCEL_KERNEL void uaccel_reduce_sum_helium_##type(const struct uaccel_reduce *p, const element *input, \
                                                       element *output)                                     \
    {                                                                                                       \
        for (uaccel_index o = 0; o < p->outer; ++o) {                                                       \
            uaccel_index c = 0;                                                                             \
            for (; c + 8 <= p->middle; c += 8) {                                                            \
                uaccel_reduce_helium_some_##type(p, input + c, true, vctp16q(8), output + c);               \
            }                                                                                               \
            if (c < p->middle) {                                                                            \
                const mve_pred16_t some = vctp16q((uint32_t)(p->middle - c));                               \
                uaccel_reduce_helium_some_##type(p, input + c, false, some, output + c);                    \
            }                                                                                               \
            input += p->reduced_outer * p->middle;                                                          \
            output += p->middle;                                                                            \
        }                                                                                                   \
    }

UACCEL_REDUCE_HELIUM(s8, int8_t)
UACCEL_REDUCE_HELIUM(s16, int16_t)
#undef UACCEL_REDUCE_HELIUM

#endif
