/* The output stage of models that requantise in single precision: one multiplication, rounded, then half to even.
 *
 * Models from ONNX and PyTorch mean it so. Without an FPU for it integers give the same bits.
 *
 * A scale is a multiplier of 2^30..2^31-1, of which 24 bits count, and a shift. The multiplier's low 7 bits are the
 * rest of the bias, in 128ths: a real bias is seldom a whole number of products. They are added to sums of up to
 * 2^24. */
#ifndef UACCEL_FLOAT32_H
#define UACCEL_FLOAT32_H

#include "uaccel_fixedpoint.h"

/* What results are saturated to, so that a zero point can be added: far beyond any type of 16 bits. */
#define UACCEL_FLOAT32_HIGHEST ((INT32_C(1) << 23) - 1)
#define UACCEL_FLOAT32_LOWEST (-UACCEL_FLOAT32_HIGHEST - 1)

#define UACCEL_FLOAT32_RESTS 127 /* the bits of a multiplier that are the bias's rest */

/* magnitude * multiplier * 2^(shift - 31), as float32(magnitude) * float32(scale) rounds it, then half to even.
 *
 * multiplier: 2^30..2^31-1, its low 7 bits zero. What lies beyond 2^23 becomes 2^23. */
UACCEL_SHARED uint32_t uaccel_float32_product(uint32_t magnitude, int32_t multiplier, int32_t shift)
{
    const int32_t zeros = uaccel_leading_zeros(magnitude | 1u);
    const uint32_t aligned = magnitude << zeros;
    /* to 24 bits; that it may become 2^24 does no harm */
    const uint32_t odd = (aligned >> 8) & 1u;
    const uint32_t mantissa = (aligned >> 8) + ((aligned & 0xFFu) > 0x80u - odd ? 1u : 0u);
    const uint64_t product = (uint64_t)(mantissa << 1) * (uint32_t)multiplier;
    /* The product to 24 bits: the upper word has 23 or 24 of them. */
    uint32_t high = (uint32_t)(product >> 32), low = (uint32_t)product;
    int32_t drop = zeros - shift - 8; /* how many of them stand after the point */
    if (high < UINT32_C(1) << 23) {
        high = high << 1 | low >> 31;
        low <<= 1;
        ++drop;
    }
    high += low > UINT32_C(0x80000000) - (high & 1u) ? 1u : 0u;
    if (drop < 1) {
        return high == 0 ? 0 : UINT32_C(1) << 23;
    }
    const int32_t after = drop > 31 ? 31 : drop;
    return (high + (UINT32_C(1) << (after - 1)) - 1u + ((high >> after) & 1u)) >> after;
}

/* The magnitude with its sign again. */
UACCEL_KERNEL int32_t uaccel_float32_signed(uint32_t magnitude, bool negative)
{
    const int32_t value = negative ? -(int32_t)magnitude : (int32_t)magnitude;
    return value > UACCEL_FLOAT32_HIGHEST ? UACCEL_FLOAT32_HIGHEST : value;
}

/* The same for 64-bit accumulators, without a rest: what lies below their upper 32 bits matters only by whether there
 * is any. */
UACCEL_KERNEL int32_t uaccel_requantise_float32_wide(int64_t acc, int32_t multiplier, int32_t shift)
{
    uint64_t magnitude = acc < 0 ? 0u - (uint64_t)acc : (uint64_t)acc;
    if (magnitude >> 32 != 0) {
        const int32_t excess = 32 - uaccel_leading_zeros((uint32_t)(magnitude >> 32));
        const uint64_t lost = magnitude & ((UINT64_C(1) << excess) - 1u);
        magnitude = magnitude >> excess | (lost != 0 ? 1u : 0u);
        shift += excess;
    }
    return uaccel_float32_signed(uaccel_float32_product((uint32_t)magnitude, multiplier, shift), acc < 0);
}

#if defined(__GNUC__) && defined(__arm__) && defined(__ARM_FP)
#if defined(__ARM_FP) && (__ARM_FP & 4)
/* The conversion in the rounding mode of the FPU, half to even unless the application changes it; it saturates. */
#define UACCEL_FLOAT32_TO_INTEGER(to, from) __asm__("vcvtr.s32.f32 %0, %1" : "=t"((to).real) : "t"(from))
#endif
#elif defined(__GNUC__) && defined(__riscv_flen)
#if __riscv_flen >= 32
#define UACCEL_FLOAT32_TO_INTEGER(to, from) __asm__("fcvt.w.s %0, %1, rne" : "=r"((to).integer) : "f"(from))
#endif
#endif

#ifdef UACCEL_FLOAT32_TO_INTEGER

union uaccel_float32_bits {
    uint32_t bits;
    int32_t integer;
    float real;
};

/* (float32(acc) + rest) * float32(multiplier * 2^(shift - 31)), half to even, saturated. The assembly keeps the
 * compiler from joining the product with an addition, which would round once less. */
UACCEL_KERNEL int32_t uaccel_requantise_float32(int32_t acc, int32_t multiplier, int32_t shift)
{
    union uaccel_float32_bits scale, result;
    scale.bits = ((uint32_t)(shift + 125) << 23) + ((uint32_t)multiplier >> 7);
    const float sum = (float)acc + (float)(multiplier & UACCEL_FLOAT32_RESTS) * 0.0078125f;
    const float product = sum * scale.real;
    UACCEL_FLOAT32_TO_INTEGER(result, product);
#ifdef __ARM_FEATURE_SAT
    return (int32_t)__builtin_arm_ssat(result.integer, 24);
#else
    return uaccel_clamp(result.integer, UACCEL_FLOAT32_LOWEST, UACCEL_FLOAT32_HIGHEST);
#endif
}

#else

/* (float32(acc) + rest) * float32(multiplier * 2^(shift - 31)), half to even, saturated. */
UACCEL_KERNEL int32_t uaccel_requantise_float32(int32_t acc, int32_t multiplier, int32_t shift)
{
    const int32_t rest = multiplier & UACCEL_FLOAT32_RESTS;
    uint32_t magnitude = acc < 0 ? 0u - (uint32_t)acc : (uint32_t)acc;
    if (rest != 0 && magnitude <= UINT32_C(1) << 24) {
        /* a negative sum keeps its sign, as it is a whole number and the rest is less than one */
        magnitude = acc < 0 ? (magnitude << 7) - (uint32_t)rest : (magnitude << 7) + (uint32_t)rest;
        shift -= 7;
    }
    return uaccel_float32_signed(uaccel_float32_product(magnitude, multiplier - rest, shift), acc < 0);
}

#endif

#endif
