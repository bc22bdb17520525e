/* Sums of several pixels and channels for one way to round; included by uaccel_blocked.h, once a way. */

/* Four output channels of two pixels or rows, of which the second may be the first again. weights: for each of
 * `depth` inputs those of the four channels. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_blocked_2x4)(
    const struct uaccel_blocked_finish *p, const UACCEL_ITEM *first, const UACCEL_ITEM *second, uaccel_index depth,
    const UACCEL_FOUR *weights, const int32_t *constants, UACCEL_ITEM *results)
{
    int32_t a0 = constants[0], a1 = constants[4], a2 = constants[8], a3 = constants[12];
    int32_t b0 = a0, b1 = a1, b2 = a2, b3 = a3;
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
    results[0] = UACCEL_BLOCKED_ROUND(p, a0, constants);
    results[1] = UACCEL_BLOCKED_ROUND(p, a1, constants + 4);
    results[2] = UACCEL_BLOCKED_ROUND(p, a2, constants + 8);
    results[3] = UACCEL_BLOCKED_ROUND(p, a3, constants + 12);
    results[4] = UACCEL_BLOCKED_ROUND(p, b0, constants);
    results[5] = UACCEL_BLOCKED_ROUND(p, b1, constants + 4);
    results[6] = UACCEL_BLOCKED_ROUND(p, b2, constants + 8);
    results[7] = UACCEL_BLOCKED_ROUND(p, b3, constants + 12);
}

/* All output channels of two pixels. constants: filled up with channels of zeros to a multiple of four. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_blocked_channels)(
    const struct uaccel_blocked_finish *p, const UACCEL_ITEM *first, const UACCEL_ITEM *second, uaccel_index depth,
    const UACCEL_FOUR *weights, const int32_t *constants, uaccel_index channels, UACCEL_ITEM *output1,
    UACCEL_ITEM *output2)
{
    for (uaccel_index channel = 0; channel < channels; channel += 4) {
        const uaccel_index count = channels - channel < 4 ? channels - channel : 4;
        UACCEL_ITEM results[8];
        UACCEL_BLOCKED(uaccel_blocked_2x4)(p, first, second, depth, weights, constants, results);
        for (uaccel_index i = 0; i < count; ++i) {
            output1[channel + i] = results[i];
            output2[channel + i] = results[4 + i];
        }
        weights += UACCEL_WEIGHTS(4) * depth;
        constants += 16;
    }
}
