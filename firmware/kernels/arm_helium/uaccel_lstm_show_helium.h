/* What an LSTM makes of its gates, for Arm Helium: eight units at a time, int8 or int16.
 *
 * The curves are lines between points of a table, and odd about their middle. An argument's magnitude times 2^16 over
 * the distance of two points is a product of 32 bits: its upper half is the point's number, its lower half what remains,
 * and the line's upper half and a rounding are one instruction each. */
#ifndef UACCEL_LSTM_SHOW_HELIUM_H
#define UACCEL_LSTM_SHOW_HELIUM_H

#include "uaccel_dots_helium.h"
#include "uaccel_lstm.h"

/* The logistic function of eight sums in units of 2^-12. */
UACCEL_KERNEL int16x8_t uaccel_logistic_helium(const uint16_t *points, int16x8_t x)
{
    const uint16x8_t magnitude = vreinterpretq_u16_s16(vabsq_s16(x));
    const uint16x8_t point = vmulhq_u16(magnitude, vdupq_n_u16(3 << 7)), rest = vmulq_n_u16(magnitude, 3 << 7);
    const uint16x8_t low = vldrhq_gather_shifted_offset_u16(points, point);
    const uint16x8_t high = vldrhq_gather_shifted_offset_u16(points + 1, point);
    const uint16x8_t value = vrhaddq_u16(low, vmulhq_u16(rest, vsubq_u16(high, low)));
    const int16x8_t result = vreinterpretq_s16_u16(value);
    const mve_pred16_t below = vcmpltq_n_s16(x, 0);
    const int16x8_t negated = vnegq_m_s16(result, result, below);
    return vaddq_m_n_s16(negated, negated, INT16_MIN, below);
}

/* tanh of what `rest` is a part of, of sign `x`. Behind the last point but one there are two of one height. */
UACCEL_KERNEL int16x8_t uaccel_tanh_helium(const uint16_t *points, int16x8_t x, uint16x8_t point, uint16x8_t rest)
{
    point = vminq_u16(point, vdupq_n_u16(255));
    const uint16x8_t low = vldrhq_gather_shifted_offset_u16(points, point);
    const uint16x8_t high = vldrhq_gather_shifted_offset_u16(points + 1, point);
    uint16x8_t value = vaddq_u16(low, vrmulhq_u16(rest, vsubq_u16(high, low)));
    value = vaddq_n_u16(value, 1 << 15);
    const int16x8_t result = vreinterpretq_s16_u16(value);
    return vnegq_m_s16(result, result, vcmpltq_n_s16(x, 0));
}

/* Of an argument that is multiplied, and shifted right if the multiplier is 3. */
UACCEL_KERNEL int16x8_t uaccel_scaled_tanh_helium(const uint16_t *points, int16x8_t x, int32_t multiplier,
                                                  int32_t right_shift)
{
    uint16x8_t magnitude = vreinterpretq_u16_s16(vabsq_s16(x));
    if (right_shift == 0) {
        const uint16_t factor = (uint16_t)(multiplier << 8);
        return uaccel_tanh_helium(points, x, vmulhq_u16(magnitude, vdupq_n_u16(factor)), vmulq_n_u16(magnitude, factor));
    }
    if (right_shift == 1) {
        magnitude = vaddq_u16(magnitude, vreinterpretq_u16_s16(vabsq_s16(vrshrq_n_s16(x, 1))));
    } else {
        const int16x8_t scaled = vqrdmulhq_n_s16(x, (int16_t)(multiplier << (15 - right_shift)));
        magnitude = vreinterpretq_u16_s16(vabsq_s16(scaled));
    }
    return uaccel_tanh_helium(points, x, vshrq_n_u16(magnitude, 8), vshlq_n_u16(magnitude, 8));
}

/* Products of eight pairs on another scale, in 16 bits. */
UACCEL_KERNEL int16x8_t uaccel_lstm_products_helium(int16x8_t x, int16x8_t y, int32_t multiplier, int32_t shift)
{
    const int32x4_t even = uaccel_requantise_helium(vmullbq_int_s16(x, y), multiplier, shift);
    const int32x4_t odd = uaccel_requantise_helium(vmulltq_int_s16(x, y), multiplier, shift);
    return vqmovntq_s32(vqmovnbq_s32(vreinterpretq_s16_s32(even), even), odd);
}

/* From the gates' sums to the cell, and to what is shown of it but for its zero point. */
UACCEL_KERNEL int16x8_t uaccel_lstm_shown_helium(const struct uaccel_lstm *p, const uint16_t *points, int16_t *cell,
                                                 const int16_t *gates, uaccel_index room, mve_pred16_t some)
{
    const int16x8_t into = uaccel_logistic_helium(points, vldrhq_s16(gates));
    const int16x8_t forget = uaccel_logistic_helium(points, vldrhq_s16(gates + room));
    const int16x8_t update = uaccel_scaled_tanh_helium(points, vldrhq_s16(gates + 2 * room), 3, 0);
    const int16x8_t kept =
        uaccel_lstm_products_helium(forget, vldrhq_z_s16(cell, some), p->keep_multiplier, p->keep_shift);
    int16x8_t x = vqaddq_s16(kept, uaccel_lstm_products_helium(into, update, p->take_multiplier, p->take_shift));
    if (p->cell_clip > 0 && p->cell_clip <= INT16_MAX) {
        const int16x8_t clip = vdupq_n_s16((int16_t)p->cell_clip);
        x = vmaxq_s16(vminq_s16(x, clip), vnegq_s16(clip));
    }
    vstrhq_p_s16(cell, x, some);
    const int16x8_t shown = uaccel_scaled_tanh_helium(points, x, p->tanh_multiplier, p->tanh_right_shift);
    const int16x8_t given = uaccel_logistic_helium(points, vldrhq_s16(gates + 3 * room));
    return uaccel_lstm_products_helium(shown, given, p->give_multiplier, p->give_shift);
}

/* gates: of each kind `room` or more, and eight behind the last. `width`: b for bytes, h for halves. */
#define UACCEL_LSTM_SHOW_HELIUM(bits, width)                                                               \
    UACCEL_KERNEL void uaccel_lstm_show_helium_s##bits(                                                    \
        const struct uaccel_lstm *p, const uint16_t *points, int##bits##_t *output, int##bits##_t *hidden, \
        int16_t *cell, const int16_t *gates, uaccel_index room)                                            \
    {                                                                                                      \
        for (uaccel_index u = 0; u < p->units; u += 8) {                                                   \
            const mve_pred16_t some = vctp16q((uint32_t)(p->units - u));                                   \
            int16x8_t x = uaccel_lstm_shown_helium(p, points, cell + u, gates + u, room, some);            \
            x = vqaddq_n_s16(x, (int16_t)p->hidden_zero_point);                                            \
            if (bits == 8) {                                                                               \
                x = vreinterpretq_s16_s8(vqmovnbq_s16(vreinterpretq_s8_s16(x), x));                        \
            }                                                                                              \
            vstr##width##q_p_s16(hidden + u, x, some);                                                     \
            vstr##width##q_p_s16(output + u, x, some);                                                     \
        }                                                                                                  \
    }

UACCEL_LSTM_SHOW_HELIUM(8, b)
UACCEL_LSTM_SHOW_HELIUM(16, h)
#undef UACCEL_LSTM_SHOW_HELIUM

#endif
