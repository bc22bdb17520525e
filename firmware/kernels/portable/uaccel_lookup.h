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
    uaccel_index left = p->elements;
    for (; left >= 4; left -= 4) {
        const uint8_t a = values[from[0]], b = values[from[1]], c = values[from[2]], d = values[from[3]];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
        from += 4;
        to += 4;
    }
    for (; left > 0; --left) {
        *to++ = values[*from++];
    }
}

#endif
