/* Depthwise convolution for Arm Helium with sixteen channels side by side: int8, windows within the image.
 *
 * No input is copied, so that an image of few pixels costs little more than its products. Products of even and of odd
 * channels have 16 bits. Two of each are added up before they are widened, which two weights of -128 would not allow. */
#ifndef UACCEL_DEPTHWISE_ACROSS_HELIUM_H
#define UACCEL_DEPTHWISE_ACROSS_HELIUM_H

#include "uaccel_helium.h"

struct uaccel_depthwise_across_helium {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width;
    uaccel_index stride_height, stride_width;
    uaccel_index kernel_height, kernel_width; /* as lines of taps, which lie as bytes from one to the next: */
    uaccel_index line_step, tap_step;
    struct uaccel_helium_finish finish;
};

/* Four sums, rounded and shifted; the constants of their channels are four words each, sixteen words apart. */
UACCEL_KERNEL int32x4_t uaccel_depthwise_across_scaled(const struct uaccel_depthwise_across_helium *p, int32x4_t sum,
                                                       const int32_t *constants)
{
    sum = vqrdmulhq_s32(sum, vldrwq_s32(constants + 16));
    if (p->finish.sign) {
        sum = vqaddq_s32(sum, vshrq_n_s32(sum, 31));
    }
    return vrshlq_s32(sum, vldrwq_s32(constants + 32));
}

/* Sixteen channels of a pixel. `constants`: biases, multipliers and shifts, each of the channels 0, 4, 8, 12, then of
 * 2, 6, 10, 14, of 1, 5, 9, 13 and of 3, 7, 11, 15, as widening puts them. */
UACCEL_KERNEL void uaccel_depthwise_across_pixel(const struct uaccel_depthwise_across_helium *p, const int8_t *window,
                                                 const int8_t *weights, const int32_t *constants, int8_t *output)
{
    int32x4_t even = vldrwq_s32(constants), even2 = vldrwq_s32(constants + 4);
    int32x4_t odd = vldrwq_s32(constants + 8), odd2 = vldrwq_s32(constants + 12);
    for (uaccel_index line = p->kernel_height; line > 0; --line) {
        const int8_t *tap = window;
        for (uaccel_index pair = p->kernel_width / 2; pair > 0; --pair) {
            const int8x16_t first = vldrbq_s8(tap), second = vldrbq_s8(tap + p->tap_step);
            const int8x16_t weight = vldrbq_s8(weights), other = vldrbq_s8(weights + 16);
            const int16x8_t low = vaddq_s16(vmullbq_int_s8(first, weight), vmullbq_int_s8(second, other));
            const int16x8_t high = vaddq_s16(vmulltq_int_s8(first, weight), vmulltq_int_s8(second, other));
            even = vaddq_s32(even, vmovlbq_s16(low));
            even2 = vaddq_s32(even2, vmovltq_s16(low));
            odd = vaddq_s32(odd, vmovlbq_s16(high));
            odd2 = vaddq_s32(odd2, vmovltq_s16(high));
            tap += 2 * p->tap_step;
            weights += 32;
        }
        if (p->kernel_width % 2 != 0) {
            const int8x16_t first = vldrbq_s8(tap), weight = vldrbq_s8(weights);
            const int16x8_t low = vmullbq_int_s8(first, weight), high = vmulltq_int_s8(first, weight);
            even = vaddq_s32(even, vmovlbq_s16(low));
            even2 = vaddq_s32(even2, vmovltq_s16(low));
            odd = vaddq_s32(odd, vmovlbq_s16(high));
            odd2 = vaddq_s32(odd2, vmovltq_s16(high));
            weights += 16;
        }
        window += p->line_step;
    }
    even = uaccel_depthwise_across_scaled(p, even, constants);
    even2 = uaccel_depthwise_across_scaled(p, even2, constants + 4);
    odd = uaccel_depthwise_across_scaled(p, odd, constants + 8);
    odd2 = uaccel_depthwise_across_scaled(p, odd2, constants + 12);
    int16x8_t low = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(even), even), even2);
    int16x8_t high = vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(odd), odd), odd2);
    low = vqaddq_n_s16(low, (int16_t)p->finish.zero_point);
    high = vqaddq_n_s16(high, (int16_t)p->finish.zero_point);
    int8x16_t result = vqmovntq_s16(vqmovnbq_s16(vreinterpretq_s8_s16(low), low), high);
    if (p->finish.clamp) {
        result = vmaxq_s8(result, vdupq_n_s8((int8_t)p->finish.lowest));
        result = vminq_s8(result, vdupq_n_s8((int8_t)p->finish.highest));
    }
    vstrbq_s8(output, result);
}

UACCEL_KERNEL void uaccel_depthwise_across_helium_s8(const struct uaccel_depthwise_across_helium *p,
                                                     const int8_t *input, const int8_t *weights,
                                                     const int32_t *constants, int8_t *output)
{
    const uaccel_index taps = p->kernel_height * p->kernel_width;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const int8_t *window = input + y * p->stride_height * p->in_width * p->channels;
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                for (uaccel_index first = 0; first < p->channels; first += 16) { /* the last begin amid others */
                    const uaccel_index at = first < p->channels - 16 ? first : p->channels - 16;
                    uaccel_depthwise_across_pixel(p, window + at, weights + first * taps, constants + first * 3,
                                                  output + at);
                }
                window += p->stride_width * p->channels;
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
