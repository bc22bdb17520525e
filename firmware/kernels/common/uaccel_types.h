/* Includes the file UACCEL_BODY once for each type of elements: for the first UACCEL_TYPES of those below. */

/* int8 activations with 32-bit accumulators */
#define UACCEL_ELEMENT int8_t
#define UACCEL_ACCUMULATOR int32_t
#define UACCEL_FN(name) name##_s8
#define UACCEL_ADD uaccel_add_wrapping
#define UACCEL_REQUANTISE uaccel_requantise
#include "uaccel_types_body.h"

/* int16 activations with 64-bit accumulators */
#define UACCEL_ELEMENT int16_t
#define UACCEL_ACCUMULATOR int64_t
#define UACCEL_FN(name) name##_s16
#define UACCEL_ADD uaccel_add_wide
#define UACCEL_REQUANTISE uaccel_requantise_wide
#include "uaccel_types_body.h"

#if UACCEL_TYPES > 2
/* int8 activations with 32-bit accumulators, requantised in float32 */
#define UACCEL_ELEMENT int8_t
#define UACCEL_ACCUMULATOR int32_t
#define UACCEL_FN(name) name##_s8_float32
#define UACCEL_ADD uaccel_add_wrapping
#define UACCEL_REQUANTISE uaccel_requantise_float32
#include "uaccel_types_body.h"

/* int16 activations with 64-bit accumulators, requantised in float32 */
#define UACCEL_ELEMENT int16_t
#define UACCEL_ACCUMULATOR int64_t
#define UACCEL_FN(name) name##_s16_float32
#define UACCEL_ADD uaccel_add_wide
#define UACCEL_REQUANTISE uaccel_requantise_float32_wide
#include "uaccel_types_body.h"
#endif

#if UACCEL_TYPES > 4
/* int16 activations with 32-bit accumulators, which wrap */
#define UACCEL_ELEMENT int16_t
#define UACCEL_ACCUMULATOR int32_t
#define UACCEL_FN(name) name##_s16_acc32
#define UACCEL_ADD uaccel_add_wrapping
#define UACCEL_REQUANTISE uaccel_requantise
#include "uaccel_types_body.h"

/* int16 activations with 32-bit accumulators, requantised in float32 */
#define UACCEL_ELEMENT int16_t
#define UACCEL_ACCUMULATOR int32_t
#define UACCEL_FN(name) name##_s16_acc32_float32
#define UACCEL_ADD uaccel_add_wrapping
#define UACCEL_REQUANTISE uaccel_requantise_float32
#include "uaccel_types_body.h"
#endif

#undef UACCEL_BODY
#undef UACCEL_TYPES
