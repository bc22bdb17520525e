/* Element type of the bodies that follow: int16 activations with 64-bit accumulators, requantised in float32. */
#define UACCEL_ELEMENT int16_t
#define UACCEL_ACCUMULATOR int64_t
#define UACCEL_FN(name) name##_s16_float32
#define UACCEL_ADD uaccel_add_wide
#define UACCEL_REQUANTISE uaccel_requantise_float32_wide
