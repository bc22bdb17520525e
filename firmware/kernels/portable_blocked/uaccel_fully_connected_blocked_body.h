/* The kernel for one way to round; included by uaccel_fully_connected_blocked.h, once a way. */

/* weights: for each eight units and each input those of the units. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_fully_connected_blocked)(
    const struct uaccel_fully_connected_blocked *p, const UACCEL_ITEM *input, const UACCEL_EIGHT *weights,
    const int32_t *constants, UACCEL_ITEM *output)
{
    const struct uaccel_blocked_finish finish = p->finish; /* which stores of elements cannot change */
    for (uaccel_index units = p->units; units > 0; units -= 8) {
        const UACCEL_ITEM *const end = output + (units < 8 ? units : 8);
        int32_t sums[8];
        const int32_t *sum = sums;
        UACCEL_SUMS(uaccel_sums_8)(input, p->depth, weights, sums);
        weights += UACCEL_WEIGHTS(8) * p->depth;
        for (; output != end; ++output) {
            *output = UACCEL_BLOCKED_ROUND(&finish, *sum++ + constants[0], constants);
            constants += 3;
        }
    }
}
