/* Elementwise operators of two inputs with broadcasting for Arm Helium, eight elements at a time. */
#ifndef UACCEL_BINARY_HELIUM_H
#define UACCEL_BINARY_HELIUM_H

#include "uaccel_helium.h"

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

#endif
