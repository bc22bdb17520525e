/* Convolution of floats by weights in half precision with Arm Helium. */
#ifndef UACCEL_CONV2D_FLOAT_F16_HELIUM_H
#define UACCEL_CONV2D_FLOAT_F16_HELIUM_H

#include "uaccel_conv2d_float.h"
#include "uaccel_float_f16.h"
#include "uaccel_float_helium.h"

/* Each number in the lower half of a word. */
UACCEL_KERNEL float32x4_t uaccel_float_four_of_halves(const uint16_t *halves)
{
    return vcvtbq_f32_f16(vreinterpretq_f16_u32(vldrhq_u32(halves)));
}

#define UACCEL_FN(name) name##_f16_helium
#define UACCEL_FLOAT_ALONE_FN(name) name##_f16
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_FOUR(weights) uaccel_float_four_of_halves(weights)
#include "uaccel_float_rows_helium_body.h"
#undef UACCEL_FN
#undef UACCEL_FLOAT_ALONE_FN
#undef UACCEL_FLOAT_WEIGHT
#undef UACCEL_FLOAT_FOUR

#define UACCEL_FN(name) name##_f16_helium
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_SUMS1 uaccel_float_row_f16_helium
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows_f16_helium
#include "uaccel_conv2d_float_body.h"
#undef UACCEL_FN
#undef UACCEL_FLOAT_WEIGHT
#undef UACCEL_FLOAT_SUMS1
#undef UACCEL_FLOAT_SUMS4

#endif
