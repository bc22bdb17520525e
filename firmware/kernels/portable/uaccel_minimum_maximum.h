/* The smaller and the larger of two tensors' stored values, portable C. */
#ifndef UACCEL_MINIMUM_MAXIMUM_H
#define UACCEL_MINIMUM_MAXIMUM_H

#include "uaccel_binary.h"

struct uaccel_minimum {
    uaccel_index extents[6], strides1[6], strides2[6];
};

struct uaccel_maximum {
    uaccel_index extents[6], strides1[6], strides2[6];
};

#define UACCEL_AS_STORED(p, value) (value)
#define UACCEL_SMALLER(p, x, y) ((x) < (y) ? (x) : (y))
#define UACCEL_LARGER(p, x, y) ((x) > (y) ? (x) : (y))

UACCEL_BINARY(uaccel_minimum, UACCEL_AS_STORED, UACCEL_AS_STORED, UACCEL_SMALLER)
UACCEL_BINARY(uaccel_maximum, UACCEL_AS_STORED, UACCEL_AS_STORED, UACCEL_LARGER)
#undef UACCEL_AS_STORED
#undef UACCEL_SMALLER
#undef UACCEL_LARGER

#endif
