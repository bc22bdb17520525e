/* Elementwise operators of two inputs with broadcasting. */
#ifndef UACCEL_BINARY_H
#define UACCEL_BINARY_H

#include "uaccel_fixedpoint.h"

/* An element of either input less its zero point, and on a scale that both share. */
#define UACCEL_FIRST(p, value) ((value) - (p)->zero_point1)
#define UACCEL_SECOND(p, value) ((value) - (p)->zero_point2)
#define UACCEL_RAISED1(p, value) \
    uaccel_raised(UACCEL_FIRST(p, value), (p)->left_shift, (p)->multiplier1, (p)->shift1)
#define UACCEL_RAISED2(p, value) \
    uaccel_raised(UACCEL_SECOND(p, value), (p)->left_shift, (p)->multiplier2, (p)->shift2)

/* A kernel over a structure that holds the loops, outermost first; a stride of 0 repeats an input, and loops that run
 * once fold away. `first` and `second` prepare an element: int32_t (p, element); `combine` gives the output element, in
 * range: (p, int32_t, int32_t). */
#define UACCEL_BINARY_OF(name, structure, type1, type2, result, first, second, combine)                          \
    UACCEL_KERNEL void name(const struct structure *p, const type1 *input1, const type2 *input2, result *output) \
    {                                                                                                            \
        const uaccel_index *s1 = p->strides1, *s2 = p->strides2;                                                 \
        UACCEL_OUTER_LOOPS {                                                                                     \
            const type1 *row1 = input1 + UACCEL_OUTER_AT(s1);                                                    \
            const type2 *row2 = input2 + UACCEL_OUTER_AT(s2);                                                    \
            /* what is repeated along the row is prepared once */                                                \
            int32_t x = first(p, *row1);                                                                         \
            int32_t y = second(p, *row2);                                                                        \
            UACCEL_LOOP(i, 5) {                                                                                  \
                x = s1[5] != 0 ? first(p, row1[i]) : x;                                                          \
                y = s2[5] != 0 ? second(p, row2[i]) : y;                                                         \
                *output++ = (result)combine(p, x, y);                                                            \
            }                                                                                                    \
        }                                                                                                        \
    }

/* The kernels of int8 and of int16. */
#define UACCEL_BINARY(name, first, second, combine)                                   \
    UACCEL_BINARY_OF(name##_s8, name, int8_t, int8_t, int8_t, first, second, combine) \
    UACCEL_BINARY_OF(name##_s16, name, int16_t, int16_t, int16_t, first, second, combine)

#endif
