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

/* Four sums, rounded and shifted; the constants of their channels are four words each, sixteen words apart. They are read
 * here and no earlier: vectors that wait would be kept in memory. */
UACCEL_KERNEL int32x4_t uaccel_depthwise_across_scaled(const struct uaccel_depthwise_across_helium *p, int32x4_t sum,
                                                       const int32_t *constants)
{
    __asm__ volatile("" : : : "memory");
    sum = vqrdmulhq_s32(sum, vldrwq_s32(constants + 16));
    if (p->finish.sign) {
        sum = vqaddq_s32(sum, vshrq_n_s32(sum, 31));
    }
    return vrshlq_s32(sum, vldrwq_s32(constants + 32));
}

/* What `pairs` times two taps of sixteen channels add to their sums: `steps` bytes from tap to tap. Four vectors hold sums,
 * so that one of weights is loaded twice. Compilers would keep some of them in memory. */
UACCEL_KERNEL void uaccel_depthwise_across_pairs(const int8_t *tap, uaccel_index step, const int8_t *weights,
                                                 uaccel_index pairs, int32x4_t sums[4])
{
    int32x4_t even = sums[0], even2 = sums[1], odd = sums[2], odd2 = sums[3];
    __asm__ volatile("wls lr, %7, 2f\n"
                     "1: vldrb.u8 q0, [%4]\n"
                     "add %4, %6\n"
                     "vldrb.u8 q1, [%5], #16\n"
                     "vmullb.s8 q2, q0, q1\n"
                     "vldrb.u8 q3, [%5]\n"
                     "vmullt.s8 q0, q0, q1\n"
                     "vldrb.u8 q1, [%4]\n"
                     "add %4, %6\n"
                     "vmullb.s8 q3, q1, q3\n"
                     "vadd.i16 q2, q2, q3\n"
                     "vldrb.u8 q3, [%5], #16\n"
                     "vmullt.s8 q1, q1, q3\n"
                     "vmovlb.s16 q3, q2\n"
                     "vadd.i16 q0, q0, q1\n"
                     "vadd.i32 %q0, %q0, q3\n"
                     "vmovlt.s16 q2, q2\n"
                     "vmovlb.s16 q3, q0\n"
                     "vadd.i32 %q1, %q1, q2\n"
                     "vmovlt.s16 q0, q0\n"
                     "vadd.i32 %q2, %q2, q3\n"
                     "vadd.i32 %q3, %q3, q0\n"
                     "le lr, 1b\n"
                     "2:\n"
                     : "+&w"(even), "+&w"(even2), "+&w"(odd), "+&w"(odd2), "+&r"(tap), "+&r"(weights)
                     : "r"(step), "r"(pairs)
                     : "lr", "q0", "q1", "q2", "q3", "memory", "cc");
    sums[0] = even;
    sums[1] = even2;
    sums[2] = odd;
    sums[3] = odd2;
}

/* Sixteen channels of a pixel. `constants`: biases, multipliers and shifts, each of the channels 0, 4, 8, 12, then of
 * 2, 6, 10, 14, of 1, 5, 9, 13 and of 3, 7, 11, 15, as widening puts them. */
UACCEL_KERNEL void uaccel_depthwise_across_pixel(const struct uaccel_depthwise_across_helium *p, const int8_t *window,
                                                 const int8_t *weights, const int32_t *constants, int8_t *output)
{
    int32x4_t sums[4];
    for (int i = 0; i < 4; ++i) {
        sums[i] = vldrwq_s32(constants + 4 * i);
    }
    for (uaccel_index line = p->kernel_height; line > 0; --line) {
        const uaccel_index pairs = p->kernel_width / 2;
        uaccel_depthwise_across_pairs(window, p->tap_step, weights, pairs, sums);
        weights += 32 * pairs;
        if (p->kernel_width % 2 != 0) {
            const int8x16_t last = vldrbq_s8(window + 2 * pairs * p->tap_step), weight = vldrbq_s8(weights);
            const int16x8_t low = vmullbq_int_s8(last, weight), high = vmulltq_int_s8(last, weight);
            sums[0] = vaddq_s32(sums[0], vmovlbq_s16(low));
            sums[1] = vaddq_s32(sums[1], vmovltq_s16(low));
            sums[2] = vaddq_s32(sums[2], vmovlbq_s16(high));
            sums[3] = vaddq_s32(sums[3], vmovltq_s16(high));
            weights += 16;
        }
        window += p->line_step;
    }
    const int32x4_t even = uaccel_depthwise_across_scaled(p, sums[0], constants);
    const int32x4_t even2 = uaccel_depthwise_across_scaled(p, sums[1], constants + 4);
    const int32x4_t odd = uaccel_depthwise_across_scaled(p, sums[2], constants + 8);
    const int32x4_t odd2 = uaccel_depthwise_across_scaled(p, sums[3], constants + 12);
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
