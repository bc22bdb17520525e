/* What families share that take sums one by one: UACCEL_DOTS names the family; included once a family. */

/* Sums with their biases on another scale. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_scaled)(int32_t *sums, const int32_t *bias, uaccel_index rows,
                                              struct uaccel_dots_scale scale)
{
    for (uaccel_index i = 0; i < rows; ++i) {
        sums[i] = uaccel_requantise(uaccel_add_wrapping(sums[i], bias[i]), scale.multiplier, scale.shift);
    }
}

UACCEL_KERNEL void UACCEL_DOTS(uaccel_move_word)(const uint8_t *source, uint8_t *target)
{
    uint32_t word;
    memcpy(&word, source, 4);
    memcpy(target, &word, 4);
}

/* Bytes towards lower addresses, or elsewhere, by words. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_move)(const void *from, void *to, uaccel_index bytes)
{
    const uint8_t *source = from;
    uint8_t *target = to;
    for (; bytes >= 16; bytes -= 16) {
        UACCEL_DOTS(uaccel_move_word)(source, target);
        UACCEL_DOTS(uaccel_move_word)(source + 4, target + 4);
        UACCEL_DOTS(uaccel_move_word)(source + 8, target + 8);
        UACCEL_DOTS(uaccel_move_word)(source + 12, target + 12);
        source += 16;
        target += 16;
    }
    for (; bytes > 0; --bytes) {
        *target++ = *source++;
    }
}
