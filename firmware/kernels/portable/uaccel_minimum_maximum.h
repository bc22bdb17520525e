/* The smaller and the larger of two tensors' stored values, portable C. */
#ifndef UACCEL_MINIMUM_MAXIMUM_H
#define UACCEL_MINIMUM_MAXIMUM_H

#include "uaccel_fixedpoint.h"

struct uaccel_minimum {
    uaccel_index extents[6], strides1[6], strides2[6];
};

struct uaccel_maximum {
    uaccel_index extents[6], strides1[6], strides2[6];
};

#define UACCEL_AS_STORED(p, value) (value)
#define UACCEL_SMALLER(p, x, y) ((x) < (y) ? (x) : (y))
#define UACCEL_LARGER(p, x, y) ((x) > (y) ? (x) : (y))

#define UACCEL_BINARY uaccel_minimum
#define UACCEL_FIRST UACCEL_AS_STORED
#define UACCEL_SECOND UACCEL_AS_STORED
#define UACCEL_COMBINE UACCEL_SMALLER
#include "uaccel_binary.h"

#define UACCEL_BINARY uaccel_maximum
#define UACCEL_FIRST UACCEL_AS_STORED
#define UACCEL_SECOND UACCEL_AS_STORED
#define UACCEL_COMBINE UACCEL_LARGER
#include "uaccel_binary.h"

#undef UACCEL_AS_STORED
#undef UACCEL_SMALLER
#undef UACCEL_LARGER

#endif
