/* Sums of products whose weights lie in half precision: the same bits as with the same weights as floats. */
#ifndef UACCEL_FLOAT_F16_H
#define UACCEL_FLOAT_F16_H

#include "uaccel_float.h"

/* The same number, which is finite. Its exponent counts from 15 and that of a float from 127, so that its bits in the
 * float's places are 2^112 times too small; those of a number below 2^-14 are no normal float. */
UACCEL_KERNEL float uaccel_float_of_half(uint16_t half)
{
    const uint32_t bits = (uint32_t)(half & 0x7FFFu) << 13 | (uint32_t)(half & 0x8000u) << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    UACCEL_FLOAT_ALONE(value);
    return value * 0x1p112f;
}

#define UACCEL_FN(name) name##_f16
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_WIDE(weight) uaccel_float_of_half(weight)
#include "uaccel_float_rows_body.h"
#undef UACCEL_FN
#undef UACCEL_FLOAT_WEIGHT
#undef UACCEL_FLOAT_WIDE

#endif
