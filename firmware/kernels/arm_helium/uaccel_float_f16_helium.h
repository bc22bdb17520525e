/* Convolution of floats by weights in half precision with Arm Helium. */
#ifndef UACCEL_FLOAT_F16_HELIUM_H
#define UACCEL_FLOAT_F16_HELIUM_H

#include "uaccel_float_f16.h"
#include "uaccel_float_helium.h"

/* The same four numbers. None is taken for zero here. In register 0, since GNU's assembler 2.40 encodes this instruction
 * for no other as it should. */
UACCEL_KERNEL float32x4_t uaccel_float_four_of_halves(const uint16_t *halves)
{
    register uint32x4_t four __asm__("q0") = vldrhq_u32(halves);
    __asm__("vcvtb.f32.f16 q0, q0" : "+w"(four));
    return vreinterpretq_f32_u32(four);
}

#define UACCEL_FN(name) name##_f16_helium
#define UACCEL_FLOAT_ALONE_FN(name) name##_f16
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_FOUR(weights) uaccel_float_four_of_halves(weights)
#include "uaccel_float_rows_helium_body.h"

#define UACCEL_FN(name) name##_f16_helium
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_SUMS1 uaccel_float_row_f16_helium
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows_f16_helium
#include "uaccel_conv2d_float_body.h"

#endif
