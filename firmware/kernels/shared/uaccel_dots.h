/* What kernels share that begin with the products of a vector and rows of weights, by eight of them at a time. */
#ifndef UACCEL_DOTS_H
#define UACCEL_DOTS_H

#include "uaccel_fixedpoint.h"

/* A vector of `depth` bytes, in memory of `filled` bytes: the weights of what follows it are zero. So the last word may be
 * read with whatever is in it besides, if it begins at a multiple of four: then it lies in the same memory. */
UACCEL_KERNEL const int8_t *uaccel_dots_vector(const int8_t *vector, uaccel_index depth, uaccel_index filled,
                                               int8_t *scratch)
{
    bool in_words = filled == depth;
#if defined(__ARM_FEATURE_DSP)
    in_words = in_words || (filled - depth < 4 && ((uintptr_t)vector & 3) == 0);
#endif
    if (in_words) {
        return vector;
    }
    memcpy(scratch, vector, (size_t)depth);
    return scratch;
}

/* How sums leave: with a bias each, on another scale. */
struct uaccel_dots_scale {
    int32_t multiplier, shift;
};

#endif
