/* Sums along axes for one element type; included by uaccel_scaled_sum.h, once a type. */

/* The operator's type rule has made sure that the sum fits 32 bits. */
UACCEL_KERNEL int32_t UACCEL_FN(uaccel_scaled_sum_one)(const struct uaccel_scaled_sum *p, const UACCEL_ELEMENT *first)
{
    int32_t sum = 0;
    for (uaccel_index i = 0; i < p->reduced_outer; ++i) {
        const UACCEL_ELEMENT *element = first + i * p->middle * p->reduced_inner * p->inner;
        for (uaccel_index j = 0; j < p->reduced_inner; ++j) {
            sum += element[j * p->inner];
        }
    }
    return sum;
}

UACCEL_KERNEL void UACCEL_FN(uaccel_scaled_sum)(const struct uaccel_scaled_sum *p, const UACCEL_ELEMENT *input,
                                                UACCEL_ELEMENT *output)
{
    for (uaccel_index o = 0; o < p->outer; ++o) {
        for (uaccel_index m = 0; m < p->middle; ++m) {
            const UACCEL_ELEMENT *row = input + m * p->reduced_inner * p->inner;
            for (uaccel_index i = 0; i < p->inner; ++i) {
                const int32_t sum = UACCEL_FN(uaccel_scaled_sum_one)(p, row + i);
                *output++ = (UACCEL_ELEMENT)uaccel_scaled_sum_finish(p, sum);
            }
        }
        input += p->reduced_outer * p->middle * p->reduced_inner * p->inner;
    }
}
