/* Reductions along any axes, portable C. */
#ifndef UACCEL_REDUCTION_H
#define UACCEL_REDUCTION_H

#include "uaccel_fixedpoint.h"

/* A kernel over a structure of five extents: neighbouring axes are joined ahead of time, so that every reduction is
 * over the second and the fourth. `begin` is what it begins with, of the first element; `next` what becomes of it
 * with another element; `finish` the output element, in range, of (p, int32_t). */
#define UACCEL_REDUCTION(name, structure, element, begin, next, finish)                               \
    UACCEL_KERNEL void name(const struct structure *p, const element *input, element *output)         \
    {                                                                                                 \
        for (uaccel_index o = 0; o < p->outer; ++o) {                                                 \
            for (uaccel_index m = 0; m < p->middle; ++m) {                                            \
                const element *row = input + m * p->reduced_inner * p->inner;                         \
                for (uaccel_index i = 0; i < p->inner; ++i) {                                         \
                    int32_t result = begin(row[i]);                                                   \
                    for (uaccel_index j = 0; j < p->reduced_outer; ++j) {                             \
                        const element *first = row + i + j * p->middle * p->reduced_inner * p->inner; \
                        for (uaccel_index k = 0; k < p->reduced_inner; ++k) {                         \
                            result = next(result, first[k * p->inner]);                               \
                        }                                                                             \
                    }                                                                                 \
                    *output++ = (element)finish(p, result);                                           \
                }                                                                                     \
            }                                                                                         \
            input += p->reduced_outer * p->middle * p->reduced_inner * p->inner;                      \
        }                                                                                             \
    }

/* Sums fit 32 bits: whoever makes the parameters has made sure of that. */
#define UACCEL_BEGIN_SUM(element) 0
#define UACCEL_NEXT_SUM(sum, element) ((sum) + (element))

#endif
