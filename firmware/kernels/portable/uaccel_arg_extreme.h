/* Where along an axis the largest or smallest element is, portable C. Of equal ones the first. */
#ifndef UACCEL_ARG_EXTREME_H
#define UACCEL_ARG_EXTREME_H

#include "uaccel_kernel.h"

struct uaccel_arg_extreme {
    uaccel_index outer, extent, inner; /* elements before, along and behind the axis */
    int32_t wide;                      /* 1: the positions are int64_t, 0: int32_t */
};

#define UACCEL_BODY "uaccel_arg_extreme_body.h"
#define UACCEL_TYPES 2
#include "uaccel_types.h"

#endif
