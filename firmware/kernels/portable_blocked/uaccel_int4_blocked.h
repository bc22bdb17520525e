/* Layers whose weights have four bits, for any CPU, several channels at a time: int8 activations.
 *
 * A load brings the weights of all these channels for one input: those of four channels are the four halves of the
 * bytes of 16 bits, those of eight channels of 32 bits, the first channel lowest. The loops are those of eight bits. */
#ifndef UACCEL_INT4_BLOCKED_H
#define UACCEL_INT4_BLOCKED_H

#include "uaccel_conv2d_blocked.h"
#include "uaccel_depthwise_conv2d_blocked.h"
#include "uaccel_fully_connected_blocked.h"

#undef UACCEL_ITEM
#undef UACCEL_BLOCKED
#undef UACCEL_SUMS
#undef UACCEL_FOUR
#undef UACCEL_EIGHT
#undef UACCEL_WEIGHTS
#undef UACCEL_WEIGHT
#define UACCEL_ITEM int8_t
#define UACCEL_BLOCKED(name) UACCEL_ROUNDED(name##_s8)
#define UACCEL_SUMS(name) name##_s8_int4
#define UACCEL_FOUR uint16_t
#define UACCEL_EIGHT uint32_t
#define UACCEL_WEIGHTS(channels) 1
#define UACCEL_WEIGHT(weights, number) ((int32_t)((uint32_t)*(weights) << (28 - 4 * (number))) >> 28)
#include "uaccel_sums_blocked_body.h"

#define UACCEL_ROUNDED(name) name##_int4
#define UACCEL_BLOCKED_ROUND uaccel_blocked_round
#include "uaccel_blocked_layers_body.h"

#define UACCEL_ROUNDED(name) name##_float32_int4
#define UACCEL_BLOCKED_ROUND uaccel_blocked_round_float32
#include "uaccel_blocked_layers_body.h"

#endif
