/* SVDF and LSTM for families that take sums and units one by one: UACCEL_DOTS names the family, UACCEL_SHOW_PRODUCT is
 * round(2 * x * multiplier / 2^32), halves upwards. Included once a family. */

/* The newest features of up to eight filters, `after` being the first one's place. Wraps, as the reference's does: it
 * clamps before it adds the zero point. */
#define UACCEL_SVDF_REMEMBER(bits)                                                                                 \
    UACCEL_KERNEL void UACCEL_DOTS(uaccel_svdf_remember_s##bits)(                                                  \
        const struct uaccel_svdf *p, const int32_t *features, uaccel_index count, int##bits##_t *after)            \
    {                                                                                                              \
        for (uaccel_index i = 0; i < count; ++i) {                                                                 \
            *after = (int##bits##_t)(uaccel_clamp(features[i], p->state_min, p->state_max) + p->state_zero_point); \
            after += p->memory;                                                                                    \
        }                                                                                                          \
    }
UACCEL_SVDF_REMEMBER(8)
UACCEL_SVDF_REMEMBER(16)
#undef UACCEL_SVDF_REMEMBER

/* What the memories give. */
#define UACCEL_SVDF_GIVE(bits)                                                                                     \
    UACCEL_KERNEL void UACCEL_DOTS(uaccel_svdf_give_s##bits)(const struct uaccel_svdf *p, const int##bits##_t *state, \
                                                             const int##bits##_t *times, const int32_t *bias,      \
                                                             int8_t *output)                                       \
    {                                                                                                              \
        const uaccel_index reach = p->rank * p->memory;                                                            \
        for (uaccel_index u = 0; u < p->units; ++u) {                                                              \
            int32_t acc = UACCEL_DOTS(uaccel_row_s##bits)(state + u * reach, times + u * reach, reach, bias[u]);   \
            acc = uaccel_requantise(acc, p->output_multiplier, p->output_shift);                                   \
            *output++ = (int8_t)uaccel_finish(acc, p->output_zero_point, INT8_MIN, INT8_MAX);                      \
        }                                                                                                          \
    }
UACCEL_SVDF_GIVE(8)
UACCEL_SVDF_GIVE(16)
#undef UACCEL_SVDF_GIVE

/* What an LSTM makes of its gates. The curves are lines between points of a table, and odd about their middle. */

/* Between the points about `magnitude`, whose lowest bits are what lies between two. */
UACCEL_KERNEL int32_t UACCEL_DOTS(uaccel_line)(const uint16_t *points, int32_t magnitude, int32_t bits, int32_t rounding)
{
    const uint16_t *const at = points + (magnitude >> bits);
    const int32_t rest = magnitude & ((INT32_C(1) << bits) - 1), low = at[0];
    return (low << bits) + rounding + rest * (at[1] - low);
}

UACCEL_KERNEL int32_t UACCEL_DOTS(uaccel_logistic)(const uint16_t *points, int32_t x)
{
    const int32_t magnitude = 3 * (x < 0 ? -x : x);
    const int32_t value = UACCEL_DOTS(uaccel_line)(points, magnitude, 9, INT32_C(1) << 9) >> 10;
    return x < 0 ? (INT32_C(1) << 15) - value : value;
}

/* Behind the last point but one there are two of one height. */
UACCEL_KERNEL int32_t UACCEL_DOTS(uaccel_tanh)(const uint16_t *points, int32_t x)
{
    const int32_t magnitude = x < 0 ? -x : x;
    const int32_t inside = magnitude < 0xFFFF ? magnitude : 0xFFFF;
    const int32_t value = UACCEL_DOTS(uaccel_line)(points, inside, 8, (INT32_C(1) << 7) - (INT32_C(1) << 23)) >> 8;
    return x < 0 ? -value : value;
}

/* A product of two halves on another scale. */
UACCEL_KERNEL int32_t UACCEL_DOTS(uaccel_lstm_product)(int32_t x, int32_t y, int32_t multiplier, int32_t shift)
{
    if (shift >= 0) {
        return uaccel_requantise(x * y, multiplier, shift);
    }
    const int32_t high = UACCEL_SHOW_PRODUCT(x * y, multiplier);
    return (high + (high >> 31) + (INT32_C(1) << (-shift - 1))) >> -shift;
}

/* From the gates' sums, `room` of each kind, to the cell, and to what is shown of it but for its zero point. */
UACCEL_KERNEL int32_t UACCEL_DOTS(uaccel_lstm_shown)(const struct uaccel_lstm *p, const uint16_t *points, int16_t *cell,
                                                     const int16_t *gates, uaccel_index room)
{
    const int32_t into = UACCEL_DOTS(uaccel_logistic)(points, gates[0]);
    const int32_t forget = UACCEL_DOTS(uaccel_logistic)(points, gates[room]);
    const int32_t update = UACCEL_DOTS(uaccel_tanh)(points, 3 * gates[2 * room]);
    const int32_t kept = UACCEL_DOTS(uaccel_lstm_product)(forget, *cell, p->keep_multiplier, p->keep_shift);
    const int32_t taken = UACCEL_DOTS(uaccel_lstm_product)(into, update, p->take_multiplier, p->take_shift);
    int32_t x = uaccel_clamp16(uaccel_clamp16(kept) + uaccel_clamp16(taken));
    if (p->cell_clip > 0) {
        x = uaccel_clamp(x, -p->cell_clip, p->cell_clip);
    }
    *cell = (int16_t)x;
    const int32_t rounding = p->tanh_right_shift > 0 ? INT32_C(1) << (p->tanh_right_shift - 1) : 0;
    const int32_t shown = UACCEL_DOTS(uaccel_tanh)(points, (x * p->tanh_multiplier + rounding) >> p->tanh_right_shift);
    const int32_t given = UACCEL_DOTS(uaccel_logistic)(points, gates[3 * room]);
    return UACCEL_DOTS(uaccel_lstm_product)(shown, given, p->give_multiplier, p->give_shift);
}

/* gates: `room` of each kind. */
#define UACCEL_SHOW_UNITS(bits)                                                                            \
    UACCEL_KERNEL void UACCEL_DOTS(uaccel_lstm_show_s##bits)(                                              \
        const struct uaccel_lstm *p, const uint16_t *points, int##bits##_t *output, int##bits##_t *hidden, \
        int16_t *cell, const int16_t *gates, uaccel_index room)                                            \
    {                                                                                                      \
        for (uaccel_index u = 0; u < p->units; ++u) {                                                      \
            const int32_t given = UACCEL_DOTS(uaccel_lstm_shown)(p, points, cell + u, gates + u, room);    \
            const int32_t shown = given + p->hidden_zero_point;                                            \
            output[u] = hidden[u] = (int##bits##_t)uaccel_clamp(shown, INT##bits##_MIN, INT##bits##_MAX);  \
        }                                                                                                  \
    }
UACCEL_SHOW_UNITS(8)
UACCEL_SHOW_UNITS(16)
#undef UACCEL_SHOW_UNITS

#include "uaccel_recurrent_body.h"
#undef UACCEL_SHOW_PRODUCT
