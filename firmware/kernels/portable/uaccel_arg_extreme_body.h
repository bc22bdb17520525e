/* The kernels for one element type; included by uaccel_arg_extreme.h, once a type. */

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
