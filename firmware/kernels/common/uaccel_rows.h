/* Row buffers of layers that run some rows at a time. */
#ifndef UACCEL_ROWS_H
#define UACCEL_ROWS_H

#include "uaccel_kernel.h"

/* Rows that are needed again move to the front of their buffer: target lies before source, and they may overlap. */
UACCEL_SHARED void uaccel_keep_rows(void *target, const void *source, size_t bytes)
{
    uint8_t *to = target;
    const uint8_t *from = source;
    for (; bytes >= 16; bytes -= 16, to += 16, from += 16) {
        uint32_t words[4];
        memcpy(words, from, 16);
        memcpy(to, words, 16);
    }
    for (; bytes > 0; --bytes) {
        *to++ = *from++;
    }
}

#endif
