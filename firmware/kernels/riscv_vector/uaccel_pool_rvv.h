/* Average over windows for RISC-V's vector extension: NHWC, int8, 32 channels at a time. */
#ifndef UACCEL_POOL_RVV_H
#define UACCEL_POOL_RVV_H

#include "uaccel_pool.h"
#include "uaccel_rvv.h"

/* Up to 32 channels from `channel` on under one window of `height` by `width` pixels, none of them empty: the sums and
 * then their means, halves away from zero. */
UACCEL_SHARED void uaccel_pool_rvv_block(const struct uaccel_pool *p, const int8_t *channel, uaccel_index height,
                                         uaccel_index width, uaccel_index lanes, int8_t *output)
{
    const uaccel_index count = height * width;
    const int8_t *pixel;
    uaccel_index left;
    __asm volatile(UACCEL_RVV_BEGIN UACCEL_RVV_WORDS("m8")
                                    "vmv.v.i v8, 0\n\t" UACCEL_RVV_HALVES("m4") /* sums are words all the same */
                                    "1:\n\t"
                                    "mv %[pixel], %[row]\n\t"
                                    "mv %[left], %[width]\n"
                                    "2:\n\t"
                                    "vle8.v v0, (%[pixel])\n\t"
                                    "addi %[left], %[left], -1\n\t"
                                    "vsext.vf2 v4, v0\n\t"
                                    "add %[pixel], %[pixel], %[channels]\n\t"
                                    "vwadd.wv v8, v8, v4\n\t"
                                    "bnez %[left], 2b\n\t"
                                    "add %[row], %[row], %[pitch]\n\t"
                                    "addi %[height], %[height], -1\n\t"
                                    "bnez %[height], 1b\n\t"
                                    UACCEL_RVV_WORDS("m8")
                                    "vsra.vi v16, v8, 31\n\t" /* half the count, with the sum's sign */
                                    "vxor.vx v24, v16, %[half]\n\t"
                                    "vsub.vv v24, v24, v16\n\t"
                                    "vadd.vv v8, v8, v24\n\t"
                                    "vdiv.vx v8, v8, %[count]\n\t" UACCEL_RVV_HALVES("m4") UACCEL_RVV_NARROW("v8")
                                    UACCEL_RVV_BYTES("m2") UACCEL_RVV_STORE("v8")
                                        UACCEL_RVV_END
                   : [row] "+&r"(channel), [height] "+&r"(height), [pixel] "=&r"(pixel), [left] "=&r"(left)
                   : [width] "r"(width), [channels] "r"(p->geo.in_channels), [lanes] "r"(lanes), [half] "r"(count / 2),
                     [pitch] "r"(p->geo.in_width * p->geo.in_channels), [count] "r"(count), [low] "r"(p->clamp_min),
                     [high] "r"(p->clamp_max), [output] "r"(output)
                   : UACCEL_RVV_CLOBBERS);
}

/* All channels of a window. */
UACCEL_KERNEL void uaccel_pool_rvv_mean(const struct uaccel_pool *p, const int8_t *pixels, uaccel_index height,
                                        uaccel_index width, int8_t *output)
{
    for (uaccel_index c = 0; c < p->geo.in_channels; c += UACCEL_RVV_LANES) {
        const uaccel_index rest = p->geo.in_channels - c;
        uaccel_pool_rvv_block(p, pixels + c, height, width, rest < UACCEL_RVV_LANES ? rest : UACCEL_RVV_LANES,
                              output + c);
    }
}

UACCEL_POOL(uaccel_average_pool_rvv_s8, int8_t, uaccel_pool_rvv_mean)

#endif
