/* How the bodies that follow round: as TFLite does. */
#define UACCEL_ROUNDED(name) name
#define UACCEL_BLOCKED_ROUND uaccel_blocked_round
