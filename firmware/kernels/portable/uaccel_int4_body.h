/* The kernels for one way to round; included by uaccel_int4.h, once a way: those of eight bits. */

#define UACCEL_ELEMENT int8_t
#define UACCEL_ACCUMULATOR int32_t
#define UACCEL_FN(name) UACCEL_ROUNDED(name##_int4_s8)
#define UACCEL_ADD uaccel_add_wrapping
#define UACCEL_REQUANTISE UACCEL_ROUNDED(uaccel_requantise)
#include "uaccel_weights_body.h"
#undef UACCEL_ELEMENT
#undef UACCEL_ACCUMULATOR
#undef UACCEL_FN
#undef UACCEL_ADD
#undef UACCEL_REQUANTISE
