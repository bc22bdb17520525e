/* Sums of products whose weights lie in half precision: the same bits as with the same weights as floats. */
#ifndef UACCEL_FLOAT_F16_H
#define UACCEL_FLOAT_F16_H

#include "uaccel_float.h"

#if defined(__GNUC__) && defined(__ARM_FP) && defined(__ARM_ARCH_PROFILE) && __ARM_ARCH_PROFILE == 'M'
/* The same two numbers. Every FPU of a Cortex-M widens them, in IEEE's format as long as the program does not ask for
 * another (FPSCR.AHP), and takes none for zero. */
UACCEL_KERNEL void uaccel_float_of_halves(const uint16_t *halves, float *first, float *second)
{
    float both;
    memcpy(&both, halves, sizeof both);
    __asm__("vcvtb.f32.f16 %0, %1" : "=t"(*first) : "t"(both));
    __asm__("vcvtt.f32.f16 %0, %1" : "=t"(*second) : "t"(both));
}
#else
/* The same number, which is finite. Its exponent counts from 15 and that of a float from 127, so that its bits in the
 * float's places are 2^112 times too small; those of a number below 2^-14 are no normal float. */
UACCEL_KERNEL float uaccel_float_of_half(uint16_t half)
{
    const uint32_t bits = (uint32_t)(half & 0x7FFFu) << 13 | (uint32_t)(half & 0x8000u) << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value * 0x1p112f;
}

UACCEL_KERNEL void uaccel_float_of_halves(const uint16_t *halves, float *first, float *second)
{
    *first = uaccel_float_of_half(halves[0]);
    *second = uaccel_float_of_half(halves[1]);
}
#endif

#define UACCEL_FN(name) name##_f16
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_WIDE uaccel_float_of_halves
#include "uaccel_float_rows_body.h"

/* Convolution of floats by weights in half precision. */

#define UACCEL_FN(name) name##_f16
#define UACCEL_FLOAT_WEIGHT uint16_t
#define UACCEL_FLOAT_SUMS1 uaccel_float_row_f16
#define UACCEL_FLOAT_SUMS4 uaccel_float_rows_f16
#include "uaccel_conv2d_float_body.h"

#endif
