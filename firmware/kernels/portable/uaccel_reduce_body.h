/* Reductions and positions of extremes for one element type; included by uaccel_reduce.h, once a type. */

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

UACCEL_KERNEL int32_t UACCEL_FN(uaccel_arg_extreme_one)(const struct uaccel_arg_extreme *p,
                                                        const UACCEL_ELEMENT *element, bool largest)
{
    UACCEL_ELEMENT extreme = element[0];
    int32_t position = 0;
    for (uaccel_index k = 1; k < p->extent; ++k) {
        const UACCEL_ELEMENT value = element[k * p->inner];
        if (largest ? value > extreme : value < extreme) {
            extreme = value;
            position = k;
        }
    }
    return position;
}

UACCEL_KERNEL void UACCEL_FN(uaccel_arg_extreme)(const struct uaccel_arg_extreme *p, const UACCEL_ELEMENT *input,
                                                 void *output, bool largest)
{
    for (uaccel_index o = 0; o < p->outer; ++o) {
        for (uaccel_index i = 0; i < p->inner; ++i) {
            const UACCEL_ELEMENT *element = input + o * p->extent * p->inner + i;
            const int32_t position = UACCEL_FN(uaccel_arg_extreme_one)(p, element, largest);
            if (p->wide) {
                ((int64_t *)output)[o * p->inner + i] = position;
            } else {
                ((int32_t *)output)[o * p->inner + i] = position;
            }
        }
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_arg_max)(const struct uaccel_arg_extreme *p, const UACCEL_ELEMENT *input,
                                             void *output)
{
    UACCEL_FN(uaccel_arg_extreme)(p, input, output, true);
}

UACCEL_KERNEL void UACCEL_FN(uaccel_arg_min)(const struct uaccel_arg_extreme *p, const UACCEL_ELEMENT *input,
                                             void *output)
{
    UACCEL_FN(uaccel_arg_extreme)(p, input, output, false);
}
