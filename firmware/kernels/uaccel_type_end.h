/* Ends what uaccel_type_*.h began. */
#undef UACCEL_ELEMENT
#undef UACCEL_ACCUMULATOR
#undef UACCEL_FN
#undef UACCEL_ADD
#undef UACCEL_REQUANTISE
