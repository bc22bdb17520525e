/* The reduction kernels for one element type; included by uaccel_reduce.h, once a type. */

/* One output element before requantisation. A sum fits 32 bits: the front end has made sure of that. */
UACCEL_KERNEL int32_t UACCEL_FN(uaccel_reduce_one)(const struct uaccel_reduce *p, const UACCEL_ELEMENT *first,
                                                   enum uaccel_reduction reduction)
{
    const bool adds = reduction == UACCEL_REDUCE_SUM || reduction == UACCEL_REDUCE_SUM_FLOAT32;
    int32_t result = adds ? 0 : *first;
    for (uaccel_index i = 0; i < p->reduced_outer; ++i) {
        const UACCEL_ELEMENT *element = first + i * p->middle * p->reduced_inner * p->inner;
        for (uaccel_index j = 0; j < p->reduced_inner; ++j) {
            const int32_t value = element[j * p->inner];
            if (adds) {
                result += value;
            } else if (reduction == UACCEL_REDUCE_MAX ? value > result : value < result) {
                result = value;
            }
        }
    }
    return result;
}

UACCEL_KERNEL UACCEL_ELEMENT UACCEL_FN(uaccel_reduce_requantise)(const struct uaccel_reduce *p, int32_t sum,
                                                                  enum uaccel_reduction reduction)
{
    const int32_t highest = (INT32_C(1) << (8 * (int32_t)sizeof(UACCEL_ELEMENT) - 1)) - 1;
    const int32_t acc = uaccel_add_wrapping(sum, p->offset);
    const int32_t scaled = reduction == UACCEL_REDUCE_SUM_FLOAT32
                               ? uaccel_requantise_float32(acc, p->multiplier, p->shift)
                               : uaccel_requantise(acc, p->multiplier, p->shift);
    return (UACCEL_ELEMENT)uaccel_finish(scaled, p->output_zero_point, -highest - 1, highest);
}

UACCEL_KERNEL void UACCEL_FN(uaccel_reduce)(const struct uaccel_reduce *p, const UACCEL_ELEMENT *input,
                                            UACCEL_ELEMENT *output, enum uaccel_reduction reduction)
{
    for (uaccel_index o = 0; o < p->outer; ++o) {
        for (uaccel_index m = 0; m < p->middle; ++m) {
            const UACCEL_ELEMENT *row = input + m * p->reduced_inner * p->inner;
            for (uaccel_index i = 0; i < p->inner; ++i) {
                const int32_t value = UACCEL_FN(uaccel_reduce_one)(p, row + i, reduction);
                const bool whole = reduction == UACCEL_REDUCE_MAX || reduction == UACCEL_REDUCE_MIN;
                *output++ = whole ? (UACCEL_ELEMENT)value : UACCEL_FN(uaccel_reduce_requantise)(p, value, reduction);
            }
        }
        input += p->reduced_outer * p->middle * p->reduced_inner * p->inner;
    }
}

#define UACCEL_REDUCTION(name, reduction)                                                                     \
    UACCEL_KERNEL void UACCEL_FN(name)(const struct uaccel_reduce *p, const UACCEL_ELEMENT *input,            \
                                       UACCEL_ELEMENT *output)                                                \
    {                                                                                                         \
        UACCEL_FN(uaccel_reduce)(p, input, output, reduction);                                                \
    }

UACCEL_REDUCTION(uaccel_reduce_sum, UACCEL_REDUCE_SUM)
UACCEL_REDUCTION(uaccel_reduce_sum_float32, UACCEL_REDUCE_SUM_FLOAT32)
UACCEL_REDUCTION(uaccel_reduce_max, UACCEL_REDUCE_MAX)
UACCEL_REDUCTION(uaccel_reduce_min, UACCEL_REDUCE_MIN)
#undef UACCEL_REDUCTION
