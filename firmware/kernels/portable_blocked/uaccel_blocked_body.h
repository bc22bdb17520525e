/* Elements from sums for one way to round; included by uaccel_blocked.h, once a way. */

/* Up to four channels of two pixels; sums: those of the first and from the fifth on of the second. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_blocked_pair)(const struct uaccel_blocked_finish *p, const int32_t *sums,
                                                       const int32_t *constants, uaccel_index count,
                                                       UACCEL_ITEM *output1, UACCEL_ITEM *output2)
{
    const struct uaccel_blocked_finish finish = *p; /* which stores of elements cannot change */
    for (const int32_t *end = sums + count; sums != end; ++sums) {
        const UACCEL_ITEM first = UACCEL_BLOCKED_ROUND(&finish, sums[0] + constants[0], constants);
        *output2++ = UACCEL_BLOCKED_ROUND(&finish, sums[4] + constants[0], constants);
        *output1++ = first;
        constants += 3;
    }
}

/* All output channels of two pixels. constants: filled up with channels of zeros to a multiple of four. */
UACCEL_SHARED void UACCEL_BLOCKED(uaccel_blocked_channels)(
    const struct uaccel_blocked_finish *p, const UACCEL_ITEM *first, const UACCEL_ITEM *second, uaccel_index depth,
    const UACCEL_FOUR *weights, const int32_t *constants, uaccel_index channels, UACCEL_ITEM *output1,
    UACCEL_ITEM *output2)
{
    for (uaccel_index channel = 0; channel < channels; channel += 4) {
        const uaccel_index count = channels - channel < 4 ? channels - channel : 4;
        int32_t sums[8];
        UACCEL_SUMS(uaccel_sums_2x4)(first, second, depth, weights, sums);
        UACCEL_BLOCKED(uaccel_blocked_pair)(p, sums, constants, count, output1 + channel, output2 + channel);
        weights += UACCEL_WEIGHTS(4) * depth;
        constants += 12;
    }
}
