/* Comparisons of quantised tensors, portable C: both inputs become integers at one fine scale first. */
#ifndef UACCEL_COMPARE_H
#define UACCEL_COMPARE_H

#include "uaccel_binary.h"

struct uaccel_compare {
    uaccel_index extents[6], strides1[6], strides2[6];
    int32_t kind;       /* 0: ==, 1: !=, 2: >, 3: >=, 4: <, 5: <= */
    int32_t left_shift; /* bits after the point */
    int32_t zero_point1, multiplier1, shift1;
    int32_t zero_point2, multiplier2, shift2;
};

UACCEL_KERNEL int32_t uaccel_compare_combine(const struct uaccel_compare *p, int32_t x, int32_t y)
{
    switch (p->kind) {
    case 0: return x == y;
    case 1: return x != y;
    case 2: return x > y;
    case 3: return x >= y;
    case 4: return x < y;
    default: return x <= y;
    }
}

#define UACCEL_COMPARE(name, type) \
    UACCEL_BINARY_OF(name, uaccel_compare, type, type, uint8_t, UACCEL_RAISED1, UACCEL_RAISED2, uaccel_compare_combine)
UACCEL_COMPARE(uaccel_compare_s8, int8_t)
UACCEL_COMPARE(uaccel_compare_s16, int16_t)
#undef UACCEL_COMPARE

#endif
