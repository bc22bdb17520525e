/* Element type of the bodies that follow: int16 activations with 64-bit accumulators. */
#define UACCEL_ELEMENT int16_t
#define UACCEL_ACCUMULATOR int64_t
#define UACCEL_FN(name) name##_s16
#define UACCEL_ADD uaccel_add_wide
#define UACCEL_REQUANTISE uaccel_requantise_wide
