/* Sums of products of floats with Arm Helium, four output channels a vector: the same bits as uaccel_float.h gives.
 *
 * Helium takes numbers below 2^-126 for zero, and the FPU notes that it did. Such sums are computed again, without it.
 * The notes are cleared. */
#ifndef UACCEL_FLOAT_HELIUM_H
#define UACCEL_FLOAT_HELIUM_H

#include "uaccel_float.h"

#if !defined(__ARM_FEATURE_MVE) || !(__ARM_FEATURE_MVE & 2)
#error "this model was compiled for a CPU with Arm Helium for floats; compile it again with --board and your board"
#endif
#include <arm_mve.h>

#define UACCEL_FLOAT_SUBNORMAL 0x88u /* FPSCR: a result or an operand was too small to be normal */

/* Whether a sum that these vectors went into met such a number. */
UACCEL_KERNEL bool uaccel_float_is_flushed(float32x4_t first, float32x4_t second, float32x4_t third, float32x4_t last)
{
    uint32_t flags;
    __asm__ volatile("vmrs %0, fpscr" : "=r"(flags) : "w"(first), "w"(second), "w"(third), "w"(last));
    if ((flags & UACCEL_FLOAT_SUBNORMAL) == 0) {
        return false;
    }
    __asm__ volatile("vmsr fpscr, %0" : : "r"(flags & ~UACCEL_FLOAT_SUBNORMAL));
    return true;
}

UACCEL_KERNEL float32x4_t uaccel_float_macs(float32x4_t sums, float32x4_t weights, float value)
{
    float32x4_t products = vmulq_n_f32(weights, value);
    __asm__("" : "+w"(products)); /* each is rounded before it is added */
    return vaddq_f32(sums, products);
}

UACCEL_KERNEL float32x4_t uaccel_float_macs_apart(float32x4_t sums, float32x4_t weights, float32x4_t values)
{
    float32x4_t products = vmulq_f32(weights, values);
    __asm__("" : "+w"(products));
    return vaddq_f32(sums, products);
}

#define UACCEL_FN(name) name##_helium
#define UACCEL_FLOAT_ALONE_FN(name) name
#define UACCEL_FLOAT_WEIGHT float
#define UACCEL_FLOAT_FOUR(weights) vld1q_f32(weights)
#include "uaccel_float_rows_helium_body.h"

#endif
