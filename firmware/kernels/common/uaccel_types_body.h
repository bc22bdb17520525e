/* Includes the file UACCEL_BODY for the type that uaccel_types.h has just described, and forgets that type. */

#include UACCEL_BODY
#undef UACCEL_ELEMENT
#undef UACCEL_ACCUMULATOR
#undef UACCEL_FN
#undef UACCEL_ADD
#undef UACCEL_REQUANTISE
