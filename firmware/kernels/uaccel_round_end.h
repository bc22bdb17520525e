/* Ends what uaccel_round_*.h began. */
#undef UACCEL_ROUNDED
#undef UACCEL_BLOCKED_ROUND
#undef UACCEL_DSP_SIGN
#undef UACCEL_DSP_PLAIN
