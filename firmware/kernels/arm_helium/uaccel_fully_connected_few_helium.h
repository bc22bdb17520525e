/* Fully connected for Arm Helium: int8, one row and few units, whose weights lie as they are.
 *
 * The loop for eight units computes eight where there is one. Here each vector of the row meets those of one, two or four
 * units, and the last vector is cut by the loop's tail, so that nothing is filled up or copied. */
#ifndef UACCEL_FULLY_CONNECTED_FEW_HELIUM_H
#define UACCEL_FULLY_CONNECTED_FEW_HELIUM_H

#include "uaccel_helium.h"

struct uaccel_fully_connected_few_helium {
    uaccel_index depth, units;
    struct uaccel_helium_finish finish;
};

/* The sum of one unit. Whole rounds of 64 bytes keep loads apart from their use. */
UACCEL_KERNEL int32_t uaccel_few_one_helium(const int8_t *input, const int8_t *weights, uaccel_index depth)
{
    int32_t sum = 0;
    __asm__ volatile("wls lr, %3, 2f\n"
                     "1: vldrb.u8 q0, [%1], #16\n"
                     "vldrb.u8 q1, [%2], #16\n"
                     "vldrb.u8 q2, [%1], #16\n"
                     "vmladava.s8 %0, q0, q1\n"
                     "vldrb.u8 q3, [%2], #16\n"
                     "vldrb.u8 q0, [%1], #16\n"
                     "vmladava.s8 %0, q2, q3\n"
                     "vldrb.u8 q1, [%2], #16\n"
                     "vldrb.u8 q2, [%1], #16\n"
                     "vmladava.s8 %0, q0, q1\n"
                     "vldrb.u8 q3, [%2], #16\n"
                     "vmladava.s8 %0, q2, q3\n"
                     "le lr, 1b\n"
                     "2: wlstp.8 lr, %4, 4f\n"
                     "3: vldrb.u8 q0, [%1], #16\n"
                     "vldrb.u8 q1, [%2], #16\n"
                     "vmladava.s8 %0, q0, q1\n"
                     "letp lr, 3b\n"
                     "4:\n"
                     : "+&Te"(sum), "+&r"(input), "+&r"(weights)
                     : "r"(depth / 64), "r"(depth % 64)
                     : "lr", "q0", "q1", "q2", "q3", "memory", "cc");
    return sum;
}

/* Sums of two units, and of four. */
UACCEL_KERNEL void uaccel_few_two_helium(const int8_t *input, const int8_t *weights, uaccel_index depth, int32_t *sums)
{
    const int8_t *other = weights + depth;
    int32_t first = 0, second = 0;
    __asm__ volatile("wls lr, %5, 2f\n"
                     "1: vldrb.u8 q0, [%2], #16\n"
                     "vldrb.u8 q1, [%3], #16\n"
                     "vldrb.u8 q2, [%4], #16\n"
                     "vmladava.s8 %0, q0, q1\n"
                     "vldrb.u8 q3, [%2], #16\n"
                     "vmladava.s8 %1, q0, q2\n"
                     "vldrb.u8 q1, [%3], #16\n"
                     "vldrb.u8 q2, [%4], #16\n"
                     "vmladava.s8 %0, q3, q1\n"
                     "vmladava.s8 %1, q3, q2\n"
                     "le lr, 1b\n"
                     "2: wlstp.8 lr, %6, 4f\n"
                     "3: vldrb.u8 q0, [%2], #16\n"
                     "vldrb.u8 q1, [%3], #16\n"
                     "vldrb.u8 q2, [%4], #16\n"
                     "vmladava.s8 %0, q0, q1\n"
                     "vmladava.s8 %1, q0, q2\n"
                     "letp lr, 3b\n"
                     "4:\n"
                     : "+&Te"(first), "+&Te"(second), "+&r"(input), "+&r"(weights), "+&r"(other)
                     : "r"(depth / 32), "r"(depth % 32)
                     : "lr", "q0", "q1", "q2", "q3", "memory", "cc");
    sums[0] = first;
    sums[1] = second;
}

UACCEL_KERNEL void uaccel_few_four_helium(const int8_t *input, const int8_t *weights, uaccel_index depth, int32_t *sums)
{
    const int8_t *rows[4] = {weights, weights + depth, weights + 2 * depth, weights + 3 * depth};
    int32_t first = 0, second = 0, third = 0, fourth = 0;
    __asm__ volatile("wlstp.8 lr, %9, 2f\n"
                     "1: vldrb.u8 q0, [%4], #16\n"
                     "vldrb.u8 q1, [%5], #16\n"
                     "vldrb.u8 q2, [%6], #16\n"
                     "vmladava.s8 %0, q0, q1\n"
                     "vldrb.u8 q1, [%7], #16\n"
                     "vmladava.s8 %1, q0, q2\n"
                     "vldrb.u8 q2, [%8], #16\n"
                     "vmladava.s8 %2, q0, q1\n"
                     "vmladava.s8 %3, q0, q2\n"
                     "letp lr, 1b\n"
                     "2:\n"
                     : "+&Te"(first), "+&Te"(second), "+&Te"(third), "+&Te"(fourth), "+&r"(input), "+&r"(rows[0]),
                       "+&r"(rows[1]), "+&r"(rows[2]), "+&r"(rows[3])
                     : "r"(depth)
                     : "lr", "q0", "q1", "q2", "memory", "cc");
    sums[0] = first;
    sums[1] = second;
    sums[2] = third;
    sums[3] = fourth;
}

/* Four sums as the bytes of their results: multiplied, rounded as `sign` says, and with the zero point. */
UACCEL_KERNEL int32x4_t uaccel_few_finish_helium(const struct uaccel_helium_finish *finish, int32x4_t sums,
                                                 const int32_t *ends)
{
    const int32x4_t multiplier = vldrwq_s32(ends), right = vldrwq_s32(ends + 4);
    int32x4_t x;
    if (finish->sign >= 2) {
#if __ARM_FEATURE_MVE & 2
        float32x4_t single = vcvtq_f32_s32(sums);
        if (finish->sign == 3) {
            single = vaddq_f32(single, vreinterpretq_f32_s32(right));
        }
        x = vcvtnq_s32_f32(vmulq_f32(single, vreinterpretq_f32_s32(multiplier)));
#else
        x = sums; /* nobody asks for it */
#endif
    } else {
        x = vqrdmulhq_s32(sums, multiplier);
        if (finish->sign) {
            x = vaddq_s32(x, vshrq_n_s32(x, 31));
        }
        x = vrshlq_s32(x, right);
    }
    x = vqaddq_n_s32(x, finish->zero_point);
    return vminq_s32(vmaxq_s32(x, vdupq_n_s32(finish->lowest)), vdupq_n_s32(finish->highest));
}

/* ends: of each four units their biases, multipliers and shifts. */
UACCEL_KERNEL void uaccel_fully_connected_few_helium_s8(const struct uaccel_fully_connected_few_helium *p,
                                                        const int8_t *input, const int8_t *weights,
                                                        const int32_t *ends, int8_t *output)
{
    for (uaccel_index left = p->units; left > 0; left -= 4) {
        int32_t sums[4] = {0, 0, 0, 0};
        if (left >= 4) {
            uaccel_few_four_helium(input, weights, p->depth, sums);
        } else {
            if (left & 2) {
                uaccel_few_two_helium(input, weights, p->depth, sums);
            }
            if (left & 1) {
                const uaccel_index last = left - 1;
                sums[last] = uaccel_few_one_helium(input, weights + last * p->depth, p->depth);
            }
        }
        const int32x4_t all = vaddq_s32(vldrwq_s32(sums), vldrwq_s32(ends));
        const mve_pred16_t some = vctp32q((uint32_t)left);
        vstrbq_p_s32(output, uaccel_few_finish_helium(&p->finish, all, ends + 4), some);
        weights += 4 * p->depth;
        ends += 12;
        output += 4;
    }
}

#endif
