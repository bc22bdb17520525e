/* Convolution of floats by weights in half precision. */
#ifndef UACCEL_CONV2D_FLOAT_F16_H
#define UACCEL_CONV2D_FLOAT_F16_H

#include "uaccel_conv2d_float.h"
#include "uaccel_float_f16.h"

#define UACCEL_FN(name) name##_f16
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_SUMS1 uaccel_float_row_f16
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows_f16
#include "uaccel_conv2d_float_body.h"

#endif
