/* How the bodies that follow round: in single precision. */
#define UACCEL_ROUNDED(name) name##_float32
#define UACCEL_BLOCKED_ROUND uaccel_blocked_round_float32
#define UACCEL_DSP_SIGN "2"
#define UACCEL_DSP_PLAIN "2"
