/* A function of one 8-bit variable, as a table of its 256 values, portable C. */
#ifndef UACCEL_LOOKUP_H
#define UACCEL_LOOKUP_H

#include "uaccel_kernel.h"

struct uaccel_lookup {
    uaccel_index elements;
};

/* The bits of an element, signed or not, are the index; so the bytes need no type here. */
UACCEL_KERNEL void uaccel_lookup(const struct uaccel_lookup *p, const void *input, const void *table, void *output)
{
    const uint8_t *from = input, *values = table;
    uint8_t *to = output;
    for (uaccel_index i = 0; i < p->elements; ++i) {
        to[i] = values[from[i]];
    }
}

#endif
