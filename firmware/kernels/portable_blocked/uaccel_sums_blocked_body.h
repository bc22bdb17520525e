/* Sums of products for one way to read elements and weights; included once a way. */

/* first, second: `depth` elements of two pixels or rows, of which the second may be the first again. weights: for each
 * those of four channels. sums: four of the first and then four of the second. */
UACCEL_SHARED void UACCEL_SUMS(uaccel_sums_2x4)(const UACCEL_ITEM *first, const UACCEL_ITEM *second,
                                                uaccel_index depth, const UACCEL_FOUR *weights, int32_t *sums)
{
    int32_t a0 = 0, a1 = 0, a2 = 0, a3 = 0, b0 = 0, b1 = 0, b2 = 0, b3 = 0;
    for (const UACCEL_ITEM *end = first + depth; first != end;) {
        const int32_t x = *first++, y = *second++;
        a0 += x * UACCEL_WEIGHT(weights, 0);
        b0 += y * UACCEL_WEIGHT(weights, 0);
        a1 += x * UACCEL_WEIGHT(weights, 1);
        b1 += y * UACCEL_WEIGHT(weights, 1);
        a2 += x * UACCEL_WEIGHT(weights, 2);
        b2 += y * UACCEL_WEIGHT(weights, 2);
        a3 += x * UACCEL_WEIGHT(weights, 3);
        b3 += y * UACCEL_WEIGHT(weights, 3);
        weights += UACCEL_WEIGHTS(4);
    }
    const int32_t all[8] = {a0, a1, a2, a3, b0, b1, b2, b3};
    memcpy(sums, all, sizeof all);
}

/* The same of one row and eight units. */
UACCEL_KERNEL void UACCEL_SUMS(uaccel_sums_8)(const UACCEL_ITEM *input, uaccel_index depth,
                                              const UACCEL_EIGHT *weights, int32_t *sums)
{
    int32_t a = 0, b = 0, c = 0, d = 0, e = 0, f = 0, g = 0, h = 0;
    for (const UACCEL_ITEM *end = input + depth; input != end; ++input) {
        const int32_t x = *input;
        UACCEL_EIGHT_PRODUCTS(x, UACCEL_OF_EIGHT);
        weights += UACCEL_WEIGHTS(8);
    }
    UACCEL_EIGHT_STORE(sums);
}
