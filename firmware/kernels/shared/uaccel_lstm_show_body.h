/* What an LSTM makes of its gates, for families that take units one by one, int8 or int16: UACCEL_SHOW names the family,
 * UACCEL_SHOW_PRODUCT is round(2 * x * multiplier / 2^32), halves upwards. Included once a family.
 *
 * The curves are lines between points of a table, and odd about their middle. */

/* Between the points about `magnitude`, whose lowest bits are what lies between two. */
UACCEL_KERNEL int32_t UACCEL_SHOW(uaccel_line)(const uint16_t *points, int32_t magnitude, int32_t bits, int32_t rounding)
{
    const uint16_t *const at = points + (magnitude >> bits);
    const int32_t rest = magnitude & ((INT32_C(1) << bits) - 1), low = at[0];
    return (low << bits) + rounding + rest * (at[1] - low);
}

UACCEL_KERNEL int32_t UACCEL_SHOW(uaccel_logistic)(const uint16_t *points, int32_t x)
{
    const int32_t magnitude = 3 * (x < 0 ? -x : x);
    const int32_t value = UACCEL_SHOW(uaccel_line)(points, magnitude, 9, INT32_C(1) << 9) >> 10;
    return x < 0 ? (INT32_C(1) << 15) - value : value;
}

/* Behind the last point but one there are two of one height. */
UACCEL_KERNEL int32_t UACCEL_SHOW(uaccel_tanh)(const uint16_t *points, int32_t x)
{
    const int32_t magnitude = x < 0 ? -x : x;
    const int32_t inside = magnitude < 0xFFFF ? magnitude : 0xFFFF;
    const int32_t value = UACCEL_SHOW(uaccel_line)(points, inside, 8, (INT32_C(1) << 7) - (INT32_C(1) << 23)) >> 8;
    return x < 0 ? -value : value;
}

/* A product of two halves on another scale. */
UACCEL_KERNEL int32_t UACCEL_SHOW(uaccel_lstm_product)(int32_t x, int32_t y, int32_t multiplier, int32_t shift)
{
    if (shift >= 0) {
        return uaccel_requantise(x * y, multiplier, shift);
    }
    const int32_t high = UACCEL_SHOW_PRODUCT(x * y, multiplier);
    return (high + (high >> 31) + (INT32_C(1) << (-shift - 1))) >> -shift;
}

/* From the gates' sums, `room` of each kind, to the cell, and to what is shown of it but for its zero point. */
UACCEL_KERNEL int32_t UACCEL_SHOW(uaccel_lstm_shown)(const struct uaccel_lstm *p, const uint16_t *points, int16_t *cell,
                                                     const int16_t *gates, uaccel_index room)
{
    const int32_t into = UACCEL_SHOW(uaccel_logistic)(points, gates[0]);
    const int32_t forget = UACCEL_SHOW(uaccel_logistic)(points, gates[room]);
    const int32_t update = UACCEL_SHOW(uaccel_tanh)(points, 3 * gates[2 * room]);
    const int32_t kept = UACCEL_SHOW(uaccel_lstm_product)(forget, *cell, p->keep_multiplier, p->keep_shift);
    const int32_t taken = UACCEL_SHOW(uaccel_lstm_product)(into, update, p->take_multiplier, p->take_shift);
    int32_t x = uaccel_clamp16(uaccel_clamp16(kept) + uaccel_clamp16(taken));
    if (p->cell_clip > 0) {
        x = uaccel_clamp(x, -p->cell_clip, p->cell_clip);
    }
    *cell = (int16_t)x;
    const int32_t rounding = p->tanh_right_shift > 0 ? INT32_C(1) << (p->tanh_right_shift - 1) : 0;
    const int32_t shown = UACCEL_SHOW(uaccel_tanh)(points, (x * p->tanh_multiplier + rounding) >> p->tanh_right_shift);
    const int32_t given = UACCEL_SHOW(uaccel_logistic)(points, gates[3 * room]);
    return UACCEL_SHOW(uaccel_lstm_product)(shown, given, p->give_multiplier, p->give_shift);
}

/* gates: `room` of each kind. */
#define UACCEL_SHOW_UNITS(bits)                                                                            \
    UACCEL_KERNEL void UACCEL_SHOW(uaccel_lstm_show_s##bits)(                                              \
        const struct uaccel_lstm *p, const uint16_t *points, int##bits##_t *output, int##bits##_t *hidden, \
        int16_t *cell, const int16_t *gates, uaccel_index room)                                            \
    {                                                                                                      \
        for (uaccel_index u = 0; u < p->units; ++u) {                                                      \
            const int32_t given = UACCEL_SHOW(uaccel_lstm_shown)(p, points, cell + u, gates + u, room);    \
            const int32_t shown = given + p->hidden_zero_point;                                            \
            output[u] = hidden[u] = (int##bits##_t)uaccel_clamp(shown, INT##bits##_MIN, INT##bits##_MAX);  \
        }                                                                                                  \
    }
UACCEL_SHOW_UNITS(8)
UACCEL_SHOW_UNITS(16)
#undef UACCEL_SHOW_UNITS

#undef UACCEL_SHOW
#undef UACCEL_SHOW_PRODUCT
