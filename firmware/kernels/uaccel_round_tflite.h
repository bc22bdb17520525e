/* How the bodies that follow round: as TFLite does. */
#define UACCEL_ROUNDED(name) name
#define UACCEL_BLOCKED_ROUND uaccel_blocked_round
#define UACCEL_DSP_SIGN "1"
#define UACCEL_DSP_PLAIN "0"
