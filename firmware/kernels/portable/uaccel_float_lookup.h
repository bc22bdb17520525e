/* A function of one 8-bit variable whose results stay real: a table of its 256 values, portable C. */
#ifndef UACCEL_FLOAT_LOOKUP_H
#define UACCEL_FLOAT_LOOKUP_H

#include "uaccel_kernel.h"

struct uaccel_float_lookup {
    uaccel_index elements;
};

/* The bits of an element are the index. Nothing is computed, so a CPU without an FPU is as fast. */
UACCEL_KERNEL void uaccel_float_lookup(const struct uaccel_float_lookup *p, const void *input, const float *table,
                                       void *output)
{
    const uint8_t *from = input;
    unsigned char *to = output;
    for (uaccel_index i = 0; i < p->elements; ++i) {
        memcpy(to, &table[from[i]], sizeof *table);
        to += sizeof *table;
    }
}

#endif
