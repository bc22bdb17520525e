/* Convolution of floats by weights in half precision with Arm Helium. */
#ifndef UACCEL_CONV2D_FLOAT_F16_HELIUM_H
#define UACCEL_CONV2D_FLOAT_F16_HELIUM_H

#include "uaccel_conv2d_float.h"
#include "uaccel_float_f16.h"
#include "uaccel_float_helium.h"

/* Without a number below 2^-126 on the way, which Helium would note: to the bits of one below 2^-14 those of 2^-14 are
 * added, and 2^-14 is subtracted. */
UACCEL_KERNEL float32x4_t uaccel_float_four_of_halves(const uint16_t *halves)
{
    const uint32x4_t half = vldrhq_u32(halves), least = vdupq_n_u32(UINT32_C(1) << 23);
    const uint32x4_t bits = vshlq_n_u32(vandq_u32(half, vdupq_n_u32(0x7FFFu)), 13);
    const mve_pred16_t small = vcmphiq_u32(least, bits);
    const uint32x4_t normal = vaddq_n_u32(bits, UINT32_C(112) << 23);
    const float32x4_t sum = vreinterpretq_f32_u32(vaddq_m_u32(normal, normal, least, small));
    const float32x4_t wide = vsubq_m_n_f32(sum, sum, 0x1p-14f, small);
    const uint32x4_t sign = vshlq_n_u32(vandq_u32(half, vdupq_n_u32(0x8000u)), 16);
    return vreinterpretq_f32_u32(vorrq_u32(vreinterpretq_u32_f32(wide), sign));
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
