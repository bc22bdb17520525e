/* Layers with weights of int16 activations, for any CPU, several channels at a time. The loops are those of int8.
 *
 * Biases have 64 bits in a model; where the compiler finds that a sum with its bias fits 32 bits, sums have 32. */
#ifndef UACCEL_INT16_BLOCKED_H
#define UACCEL_INT16_BLOCKED_H

#include "uaccel_conv2d_blocked.h"
#include "uaccel_depthwise_conv2d_blocked.h"
#include "uaccel_fully_connected_blocked.h"

/* ((sum * multiplier >> 32 + shift) + 1) >> 1: rounded once, as biases of 64 bits want it. */
UACCEL_KERNEL int32_t uaccel_blocked_value_once(const struct uaccel_blocked_finish *p, int32_t sum,
                                                const int32_t *constants)
{
    const int32_t high = (int32_t)(((int64_t)sum * constants[1]) >> 32);
    return uaccel_clamp(((high >> constants[2]) + p->zero_point) >> 1, p->clamp_min, p->clamp_max);
}

#undef UACCEL_ITEM
#undef UACCEL_BLOCKED
#undef UACCEL_SUMS
#undef UACCEL_FOUR
#undef UACCEL_EIGHT
#undef UACCEL_WEIGHTS
#undef UACCEL_WEIGHT
#define UACCEL_ITEM int16_t
#define UACCEL_BLOCKED(name) UACCEL_ROUNDED(name##_s16)
#define UACCEL_SUMS(name) name##_s16
#define UACCEL_FOUR int8_t
#define UACCEL_EIGHT int8_t
#define UACCEL_WEIGHTS(channels) (channels)
#define UACCEL_WEIGHT(weights, number) (weights)[number]
#include "uaccel_sums_blocked_body.h"

#define UACCEL_ROUNDED(name) name
#define UACCEL_BLOCKED_ROUND (int16_t)uaccel_blocked_value_once
#include "uaccel_blocked_layers_body.h"

/* biases of 32 bits: rounded twice, as int8 is */
#define UACCEL_ROUNDED(name) name##_acc32
#define UACCEL_BLOCKED_ROUND (int16_t)uaccel_blocked_value
#include "uaccel_blocked_layers_body.h"

#define UACCEL_ROUNDED(name) name##_float32
#define UACCEL_BLOCKED_ROUND (int16_t)uaccel_blocked_value_float32
#include "uaccel_blocked_layers_body.h"

#endif
