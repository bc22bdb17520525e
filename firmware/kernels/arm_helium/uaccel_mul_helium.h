/* Multiplication of quantised tensors for Arm Helium: int8, and int16 without zero points. */
#ifndef UACCEL_MUL_HELIUM_H
#define UACCEL_MUL_HELIUM_H

#include "uaccel_add_helium.h"
#include "uaccel_binary_helium.h"

struct uaccel_mul_helium {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t zero_point1, zero_point2;
    int32_t multiplier, right;
    struct uaccel_helium_finish finish;
};

/* The products of even lanes and those of odd ones, on the output's scale without its zero point, and finished. */
UACCEL_KERNEL int16x8_t uaccel_mul_helium_combine(const struct uaccel_mul_helium *p, int16x8_t x, int16x8_t y,
                                                  bool bytes)
{
    if (p->zero_point1 != 0) {
        x = vsubq_n_s16(x, (int16_t)p->zero_point1);
    }
    if (p->zero_point2 != 0) {
        y = vsubq_n_s16(y, (int16_t)p->zero_point2);
    }
    const int32x4_t even = vmullbq_int_s16(x, y), odd = vmulltq_int_s16(x, y);
    return uaccel_add_helium_finish(&p->finish,
                                    uaccel_add_helium_scale(even, p->multiplier, p->right, p->finish.sign),
                                    uaccel_add_helium_scale(odd, p->multiplier, p->right, p->finish.sign), bytes);
}

UACCEL_BINARY_HELIUM(uaccel_mul_helium_s8, uaccel_mul_helium, int8_t, b, uaccel_mul_helium_combine)
UACCEL_BINARY_HELIUM(uaccel_mul_helium_s16, uaccel_mul_helium, int16_t, h, uaccel_mul_helium_combine)

#endif
