/* Sums and means along the first of two axes for Arm Helium: int8 and int16, eight neighbours of the second at a
 * time. */
#ifndef UACCEL_REDUCE_HELIUM_H
#define UACCEL_REDUCE_HELIUM_H

#include "uaccel_dots_helium.h"
#include "uaccel_reduce.h"

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

#define UACCEL_REDUCE_HELIUM(type, element)                                                                           \
    UACCEL_KERNEL void uaccel_reduce_sum_helium_##type(const struct uaccel_reduce *p, const element *input,           \
                                                       element *output)                                               \
    {                                                                                                                 \
        for (uaccel_index o = 0; o < p->outer; ++o) {                                                                 \
            uaccel_index c = 0;                                                                                       \
            for (; c + 8 <= p->middle; c += 8) {                                                                      \
                uaccel_reduce_helium_some_##type(p, input + c, true, vctp16q(8), output + c);                         \
            }                                                                                                         \
            if (c < p->middle) {                                                                                      \
                const mve_pred16_t some = vctp16q((uint32_t)(p->middle - c));                                         \
                uaccel_reduce_helium_some_##type(p, input + c, false, some, output + c);                              \
            }                                                                                                         \
            input += p->reduced_outer * p->middle;                                                                    \
            output += p->middle;                                                                                      \
        }                                                                                                             \
    }

UACCEL_REDUCE_HELIUM(s8, int8_t)
UACCEL_REDUCE_HELIUM(s16, int16_t)
#undef UACCEL_REDUCE_HELIUM

#endif
