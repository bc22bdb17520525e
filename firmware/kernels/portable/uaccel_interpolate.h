/* A table of 513 points over the range of 16 bits, with straight lines between them. */
#ifndef UACCEL_INTERPOLATE_H
#define UACCEL_INTERPOLATE_H

#include "uaccel_kernel.h"

/* The upper 9 bits of the value choose the segment, the lower 7 the place in it. */
UACCEL_KERNEL int32_t uaccel_interpolate(const int16_t *table, int32_t value)
{
    const int16_t *segment = table + 256 + (value >> 7);
    const int32_t slope = (int32_t)segment[1] - segment[0];
    return segment[0] + ((slope * (value & 127) + 64) >> 7);
}

#endif
