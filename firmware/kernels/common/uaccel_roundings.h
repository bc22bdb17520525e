/* Includes the file UACCEL_BODY once for each way to round: as TFLite does, and in single precision. The second needs
 * an FPU where UACCEL_BODY is assembly (UACCEL_NEEDS_FPU). With UACCEL_DEEP_TOO each way has a second form, for sums
 * that are taken apart as they grow (struct uaccel_dsp_deep). */

#define UACCEL_ROUNDED(name) name
#define UACCEL_BLOCKED_ROUND uaccel_blocked_round
#define UACCEL_DSP_SIGN "1"
#define UACCEL_DSP_PLAIN "0"
#define UACCEL_DEEP 0
#include UACCEL_BODY
#undef UACCEL_ROUNDED
#undef UACCEL_DEEP
#if defined(UACCEL_DEEP_TOO)
#define UACCEL_ROUNDED(name) name##_deep
#define UACCEL_DEEP 1
#include UACCEL_BODY
#undef UACCEL_ROUNDED
#undef UACCEL_DEEP
#endif
#undef UACCEL_BLOCKED_ROUND
#undef UACCEL_DSP_SIGN
#undef UACCEL_DSP_PLAIN

#if !defined(UACCEL_NEEDS_FPU) || (defined(__ARM_FP) && (__ARM_FP & 4))
#define UACCEL_ROUNDED(name) name##_float32
#define UACCEL_BLOCKED_ROUND uaccel_blocked_round_float32
#define UACCEL_DSP_SIGN "2"
#define UACCEL_DSP_PLAIN "2"
#define UACCEL_DEEP 0
#include UACCEL_BODY
#undef UACCEL_ROUNDED
#undef UACCEL_DEEP
#if defined(UACCEL_DEEP_TOO)
#define UACCEL_ROUNDED(name) name##_deep_float32
#define UACCEL_DEEP 1
#include UACCEL_BODY
#undef UACCEL_ROUNDED
#undef UACCEL_DEEP
#endif
#undef UACCEL_BLOCKED_ROUND
#undef UACCEL_DSP_SIGN
#undef UACCEL_DSP_PLAIN
#endif

#undef UACCEL_BODY
#undef UACCEL_NEEDS_FPU
#undef UACCEL_DEEP_TOO
