/* The reduction kernels for one element type; included by uaccel_reduce.h, once a type. */

/* Of a sum, requantised by a function. */
#define UACCEL_FINISH_SUM(name, requantise)                                                                 \
    UACCEL_KERNEL UACCEL_ELEMENT UACCEL_FN(name)(const struct uaccel_reduce *p, int32_t sum)                \
    {                                                                                                       \
        const int32_t highest = (INT32_C(1) << (8 * (int32_t)sizeof(UACCEL_ELEMENT) - 1)) - 1;              \
        const int32_t scaled = requantise(uaccel_add_wrapping(sum, p->offset), p->multiplier, p->shift);    \
        return (UACCEL_ELEMENT)uaccel_finish(scaled, p->output_zero_point, -highest - 1, highest);          \
    }
UACCEL_FINISH_SUM(uaccel_reduce_requantise, uaccel_requantise)
UACCEL_FINISH_SUM(uaccel_reduce_requantise_float32, uaccel_requantise_float32)
#undef UACCEL_FINISH_SUM

UACCEL_REDUCTION(UACCEL_FN(uaccel_reduce_sum), uaccel_reduce, UACCEL_ELEMENT, UACCEL_BEGIN_SUM, UACCEL_NEXT_SUM,
                 UACCEL_FN(uaccel_reduce_requantise))
UACCEL_REDUCTION(UACCEL_FN(uaccel_reduce_sum_float32), uaccel_reduce, UACCEL_ELEMENT, UACCEL_BEGIN_SUM,
                 UACCEL_NEXT_SUM, UACCEL_FN(uaccel_reduce_requantise_float32))
UACCEL_REDUCTION(UACCEL_FN(uaccel_reduce_max), uaccel_reduce, UACCEL_ELEMENT, UACCEL_BEGIN_FIRST, UACCEL_NEXT_MAX,
                 UACCEL_FINISH_AS_IT_IS)
UACCEL_REDUCTION(UACCEL_FN(uaccel_reduce_min), uaccel_reduce, UACCEL_ELEMENT, UACCEL_BEGIN_FIRST, UACCEL_NEXT_MIN,
                 UACCEL_FINISH_AS_IT_IS)
