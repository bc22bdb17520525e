/* Elementwise operators of two inputs for Arm Helium. */
#ifndef UACCEL_BINARY_HELIUM_H
#define UACCEL_BINARY_HELIUM_H

#include "uaccel_helium.h"

/* Addition of two quantised tensors of one shape for Arm Helium: int8, eight elements at a time. */

/* An input on the common scale: round(((x * factor + offset) * multiplier >> 31) >> right); without the rounding
 * where `factor` is all. */
struct uaccel_add_helium_input {
    int32_t factor, offset;
    int32_t linear; /* 1: the factor and the offset alone */
    int32_t multiplier, right;
    int32_t sign; /* 1: there are negative ties, to be rounded down */
};

struct uaccel_add_helium {
    uaccel_index count;
    struct uaccel_add_helium_input first, second;
    int32_t multiplier, right;
    struct uaccel_helium_finish finish;
};

UACCEL_KERNEL int32x4_t uaccel_add_helium_scale(int32x4_t x, int32_t multiplier, int32_t right, int32_t sign)
{
    x = vqrdmulhq_n_s32(x, multiplier);
    if (sign) {
        x = vaddq_s32(x, vshrq_n_s32(x, 31));
    }
    return right > 0 ? vrshlq_n_s32(x, -right) : x;
}

UACCEL_KERNEL int32x4_t uaccel_add_helium_rescale(const struct uaccel_add_helium_input *p, int32x4_t x)
{
    x = vmlasq_n_s32(x, vdupq_n_s32(p->factor), p->offset);
    return p->linear ? x : uaccel_add_helium_scale(x, p->multiplier, p->right, p->sign);
}

/* Four sums on the output's scale, without its zero point. */
UACCEL_KERNEL int32x4_t uaccel_add_helium_sum(const struct uaccel_add_helium *p, int32x4_t x, int32x4_t y)
{
    x = vaddq_s32(uaccel_add_helium_rescale(&p->first, x), uaccel_add_helium_rescale(&p->second, y));
    return uaccel_add_helium_scale(x, p->multiplier, p->right, p->finish.sign);
}

/* Both halves of eight elements, in turn; the results are the low bytes, or halves without a zero point. */
UACCEL_KERNEL int16x8_t uaccel_add_helium_finish(const struct uaccel_helium_finish *p, int32x4_t low, int32x4_t high,
                                                 bool bytes)
{
    int16x8_t result;
    /* the intrinsics would copy what is narrowed */
    __asm__("vqmovnb.s32 %q0, %q0" : "+w"(low));
    result = vqmovntq_s32(vreinterpretq_s16_s32(low), high);
    if (bytes) {
        result = vqaddq_n_s16(result, (int16_t)p->zero_point);
    }
    if (p->clamp) {
        result = vmaxq_s16(result, vdupq_n_s16((int16_t)p->lowest));
        return vminq_s16(result, vdupq_n_s16((int16_t)p->highest));
    }
    if (bytes) {
        __asm__("vqmovnb.s16 %q0, %q0" : "+w"(result));
    }
    return result;
}

/* The output may be either input. */
UACCEL_KERNEL void uaccel_add_helium_s8(const struct uaccel_add_helium *p, const int8_t *input1,
                                        const int8_t *input2, int8_t *output)
{
    static const uint16_t order[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    const uint16x8_t places = vldrhq_u16(order);
    const uint32_t rest = (uint32_t)p->count & 7;
    const int8_t *end = input1 + (p->count & ~7);
    while (input1 != end) {
        const int32x4_t x = vldrbq_s32(input1), y = vldrbq_s32(input2);
        input1 += 4;
        input2 += 4;
        const int32x4_t low = uaccel_add_helium_sum(p, x, y);
        const int32x4_t high = uaccel_add_helium_sum(p, vldrbq_s32(input1), vldrbq_s32(input2));
        input1 += 4;
        input2 += 4;
        vstrbq_scatter_offset_s16(output, places, uaccel_add_helium_finish(&p->finish, low, high, true));
        output += 8;
    }
    if (rest > 0) {
        const mve_pred16_t some = vctp32q(rest), more = vctp32q(rest > 4 ? rest - 4 : 0);
        const mve_pred16_t both = vcmphiq_u16(vdupq_n_u16((uint16_t)rest), places);
        const int32x4_t low = uaccel_add_helium_sum(p, vldrbq_z_s32(input1, some), vldrbq_z_s32(input2, some));
        const int32x4_t high =
            uaccel_add_helium_sum(p, vldrbq_z_s32(input1 + 4, more), vldrbq_z_s32(input2 + 4, more));
        vstrbq_scatter_offset_p_s16(output, places, uaccel_add_helium_finish(&p->finish, low, high, true), both);
    }
}

/* Elementwise operators of two inputs with broadcasting for Arm Helium, eight elements at a time. */

/* A kernel over a structure that holds the loops as those of uaccel_binary.h. `width`: b for bytes, h for halves;
 * `combine`: the output elements, in range, of bytes the low halves: int16x8_t (p, int16x8_t, int16x8_t, bytes). An
 * output may be an input of its size. */
#define UACCEL_BINARY_HELIUM(name, structure, element, width, combine)                                                \
    UACCEL_KERNEL void name(const struct structure *p, const element *input1, const element *input2, element *output) \
    {                                                                                                                 \
        const uaccel_index *s1 = p->strides1, *s2 = p->strides2;                                                      \
        UACCEL_OUTER_LOOPS {                                                                                          \
            const element *row1 = input1 + UACCEL_OUTER_AT(s1);                                                       \
            const element *row2 = input2 + UACCEL_OUTER_AT(s2);                                                       \
            /* what is repeated along the row is in every lane */                                                     \
            int16x8_t x = vdupq_n_s16(*row1), y = vdupq_n_s16(*row2);                                                 \
            uaccel_index left = p->extents[5];                                                                        \
            for (; left >= 8; left -= 8) {                                                                            \
                if (s1[5] != 0) {                                                                                     \
                    x = vldr##width##q_s16(row1);                                                                     \
                    row1 += 8;                                                                                        \
                }                                                                                                     \
                if (s2[5] != 0) {                                                                                     \
                    y = vldr##width##q_s16(row2);                                                                     \
                    row2 += 8;                                                                                        \
                }                                                                                                     \
                vstr##width##q_s16(output, combine(p, x, y, sizeof(element) == 1));                                   \
                output += 8;                                                                                          \
            }                                                                                                         \
            if (left > 0) {                                                                                           \
                const mve_pred16_t some = vctp16q((uint32_t)left);                                                    \
                x = s1[5] != 0 ? vldr##width##q_z_s16(row1, some) : x;                                                \
                y = s2[5] != 0 ? vldr##width##q_z_s16(row2, some) : y;                                                \
                vstr##width##q_p_s16(output, combine(p, x, y, sizeof(element) == 1), some);                           \
                output += left;                                                                                       \
            }                                                                                                         \
        }                                                                                                             \
    }

/* Addition and subtraction of quantised tensors with broadcasting for Arm Helium: int8, and int16 without zero points. */
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

/* Multiplication of quantised tensors for Arm Helium: int8, and int16 without zero points. */
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
