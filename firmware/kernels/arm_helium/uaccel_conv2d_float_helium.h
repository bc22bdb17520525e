/* Convolution of floats with Arm Helium. */
#ifndef UACCEL_CONV2D_FLOAT_HELIUM_H
#define UACCEL_CONV2D_FLOAT_HELIUM_H

#include "uaccel_conv2d_float.h"
#include "uaccel_float_helium.h"

#define UACCEL_FN(name) name##_helium
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_SUMS1 uaccel_float_row_helium
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows_helium
#include "uaccel_conv2d_float_body.h"

#endif
