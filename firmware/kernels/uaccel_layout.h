/* Moving bytes: copies, for any element type. */
#ifndef UACCEL_LAYOUT_H
#define UACCEL_LAYOUT_H

#include "uaccel_kernel.h"

struct uaccel_copy {
    uaccel_index bytes;
};

UACCEL_KERNEL void uaccel_copy(const struct uaccel_copy *p, const void *input, void *output)
{
    memcpy(output, input, (size_t)p->bytes);
}

#endif
