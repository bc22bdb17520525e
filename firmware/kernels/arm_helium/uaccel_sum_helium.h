/* Addition and subtraction of quantised tensors with broadcasting for Arm Helium: int8, and int16 without zero points. */
#ifndef UACCEL_SUM_HELIUM_H
#define UACCEL_SUM_HELIUM_H

#include "uaccel_add_helium.h"
#include "uaccel_binary_helium.h"

struct uaccel_sum_helium {
    uaccel_index extents[6], strides1[6], strides2[6];
    struct uaccel_add_helium_input first, second;
    int32_t multiplier, right;
    int32_t subtract; /* 1: first - second */
    struct uaccel_helium_finish finish;
};

/* Four elements on the output's scale, without its zero point. */
UACCEL_KERNEL int32x4_t uaccel_sum_helium_four(const struct uaccel_sum_helium *p, int32x4_t x, int32x4_t y)
{
    x = uaccel_add_helium_rescale(&p->first, x);
    y = uaccel_add_helium_rescale(&p->second, y);
    return uaccel_add_helium_scale(p->subtract ? vsubq_s32(x, y) : vaddq_s32(x, y), p->multiplier, p->right,
                                   p->finish.sign);
}

/* Even lanes and odd ones apart. */
UACCEL_KERNEL int16x8_t uaccel_sum_helium_combine(const struct uaccel_sum_helium *p, int16x8_t x, int16x8_t y,
                                                  bool bytes)
{
    const int32x4_t even = uaccel_sum_helium_four(p, vmovlbq_s16(x), vmovlbq_s16(y));
    const int32x4_t odd = uaccel_sum_helium_four(p, vmovltq_s16(x), vmovltq_s16(y));
    return uaccel_add_helium_finish(&p->finish, even, odd, bytes);
}

UACCEL_BINARY_HELIUM(uaccel_sum_helium_s8, uaccel_sum_helium, int8_t, b, uaccel_sum_helium_combine)
UACCEL_BINARY_HELIUM(uaccel_sum_helium_s16, uaccel_sum_helium, int16_t, h, uaccel_sum_helium_combine)

#endif
