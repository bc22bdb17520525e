/* The kernel for one way to round; included by uaccel_fully_connected_blocked.h, once a way. */

/* weights: for each eight units and each input those of the units. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_fully_connected_blocked)(
    const struct uaccel_fully_connected_blocked *p, const UACCEL_ITEM *input, const UACCEL_EIGHT *weights,
    const int32_t *constants, UACCEL_ITEM *output)
{
    for (uaccel_index unit = 0; unit < p->units; unit += 8) {
        const UACCEL_ITEM *const end = input + p->depth;
        int32_t sums[8];
        int32_t a = constants[0], b = constants[4], c = constants[8], d = constants[12];
        int32_t e = constants[16], f = constants[20], g = constants[24], h = constants[28];
        for (const UACCEL_ITEM *x = input; x != end; ++x) {
            const int32_t value = *x;
            UACCEL_EIGHT_PRODUCTS(value, UACCEL_OF_EIGHT);
            weights += UACCEL_WEIGHTS(8);
        }
        UACCEL_EIGHT_STORE(sums);
        for (uaccel_index i = 0; i < 8 && unit + i < p->units; ++i) {
            output[unit + i] = UACCEL_BLOCKED_ROUND(&p->finish, sums[i], constants + 4 * i);
        }
        constants += 32;
    }
}
