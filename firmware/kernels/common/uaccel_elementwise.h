/* Kernels that make each element of their output from one of their input. */
#ifndef UACCEL_ELEMENTWISE_H
#define UACCEL_ELEMENTWISE_H

#include "uaccel_kernel.h"

/* `structure` has the number of elements; `value` gives a result of (p, element), in range. */
#define UACCEL_ELEMENTWISE(name, structure, from_type, to_type, value)                         \
    UACCEL_KERNEL void name(const struct structure *p, const from_type *input, to_type *output) \
    {                                                                                          \
        for (uaccel_index i = 0; i < p->elements; ++i) {                                       \
            output[i] = (to_type)value(p, input[i]);                                           \
        }                                                                                      \
    }

#endif
