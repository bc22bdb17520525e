/* SVDF and LSTM for Arm Helium. */
#ifndef UACCEL_RECURRENT_HELIUM_H
#define UACCEL_RECURRENT_HELIUM_H

#include "uaccel_dots_helium.h"
#include "uaccel_int16_helium.h"
#include "uaccel_recurrent.h"

/* The newest features of up to eight filters, `after` being the first one's place. Wraps, as the reference's does: it
 * clamps before it adds the zero point. */
#define UACCEL_SVDF_REMEMBER(bits, width, scatter)                                                                   \
    UACCEL_KERNEL void uaccel_svdf_remember_s##bits##_dots_helium(                                                   \
        const struct uaccel_svdf *p, const int32_t *features, uaccel_index count, int##bits##_t *after)              \
    {                                                                                                                \
        const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), (uint32_t)p->memory);                              \
        for (; count > 0; count -= 4) {                                                                              \
            int32x4_t x = vmaxq_s32(vldrwq_s32(features), vdupq_n_s32(p->state_min));                                \
            x = vaddq_n_s32(vminq_s32(x, vdupq_n_s32(p->state_max)), p->state_zero_point);                           \
            vstr##width##q_scatter_##scatter##_p_s32(after, places, x, vctp32q((uint32_t)count));                    \
            features += 4;                                                                                           \
            after += 4 * p->memory;                                                                                  \
        }                                                                                                            \
    }
UACCEL_SVDF_REMEMBER(8, b, offset)
UACCEL_SVDF_REMEMBER(16, h, shifted_offset)
#undef UACCEL_SVDF_REMEMBER

/* What the memories give, by fours of units. */
#define UACCEL_SVDF_GIVE(bits)                                                                                       \
    UACCEL_KERNEL void uaccel_svdf_give_s##bits##_dots_helium(const struct uaccel_svdf *p,                           \
                                                              const int##bits##_t *state, const int##bits##_t *times, \
                                                              const int32_t *bias, int8_t *output)                   \
    {                                                                                                                \
        const uaccel_index reach = p->rank * p->memory;                                                              \
        for (uaccel_index u = 0; u < p->units; u += 4) {                                                             \
            const mve_pred16_t some = vctp32q((uint32_t)(p->units - u));                                             \
            int32_t sums[4] = {0};                                                                                   \
            for (uaccel_index i = 0; i < 4 && u + i < p->units; ++i) {                                               \
                sums[i] = uaccel_row_s##bits##_dots_helium(state, times, reach, 0);                                  \
                state += reach;                                                                                      \
                times += reach;                                                                                      \
            }                                                                                                        \
            int32x4_t x = vaddq_s32(vldrwq_s32(sums), vldrwq_z_s32(bias + u, some));                                 \
            x = uaccel_requantise_helium(x, p->output_multiplier, p->output_shift);                                  \
            x = vaddq_n_s32(x, p->output_zero_point);                                                                \
            x = vminq_s32(vmaxq_s32(x, vdupq_n_s32(INT8_MIN)), vdupq_n_s32(INT8_MAX));                               \
            vstrbq_p_s32(output + u, x, some);                                                                       \
        }                                                                                                            \
    }
UACCEL_SVDF_GIVE(8)
UACCEL_SVDF_GIVE(16)
#undef UACCEL_SVDF_GIVE

/* What an LSTM makes of its gates, for Arm Helium: eight units at a time, int8 or int16.
 *
 * The curves are lines between points of a table, and odd about their middle. An argument's magnitude times 2^16 over
 * the distance of two points is a product of 32 bits: its upper half is the point's number, its lower half what remains,
 * and the line's upper half and a rounding are one instruction each. */

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
    UACCEL_KERNEL void uaccel_lstm_show_s##bits##_dots_helium(                                                    \
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

/* LSTM for Arm Helium: eight units at a time. */

UACCEL_ASSEMBLY_BEGIN

/* stream: of each eight gates and either vector, even ones first, their biases; for each 16 inputs their weights; their
 * multiplier and their shift. */
UACCEL_ASSEMBLY void uaccel_lstm_gates_dots_helium(const struct uaccel_lstm_gates *job, const int32_t *stream)
{
    __asm__(UACCEL_HELIUM_MACROS UACCEL_HELIUM_ROWS
            ".macro uaccel_part at\n"
            "ldrd r3, r11, [r9, #\\at]\n"
            "ldmia r1!, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
            "2: uaccel_rows\n"
            "cmp r3, r11\n"
            "bne 2b\n"
            "uaccel_gather r0, r2, r4, r6, r8, r10, r12, lr\n"
            "ldrd r2, r4, [r1], #8\n"
            "cmp r4, #0\n"
            "bge 3f\n"
            "vqrdmulh.s32 q0, q0, r2\n"
            "vqrdmulh.s32 q1, q1, r2\n"
            "vshr.s32 q2, q0, #31\n"
            "vqadd.s32 q0, q0, q2\n"
            "vshr.s32 q2, q1, #31\n"
            "vqadd.s32 q1, q1, q2\n"
            "vrshl.s32 q0, r4\n"
            "vrshl.s32 q1, r4\n"
            "b 4f\n"
            "3: vshl.s32 q0, r4\n"
            "vshl.s32 q1, r4\n"
            "vqrdmulh.s32 q0, q0, r2\n"
            "vqrdmulh.s32 q1, q1, r2\n"
            "4:\n"
            "vqmovnb.s32 q0, q0\n"
            "vqmovnt.s32 q0, q1\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "mov r9, r0\n"
            "ldrd r5, r7, [r0, #16]\n"
            "1: uaccel_part 0\n"
            "vmov q3, q0\n"
            "uaccel_part 8\n"
            "vqadd.s16 q0, q0, q3\n"
            "subs r7, #1\n"
            "vstrh.16 q0, [r5], #16\n"
            "bne 1b\n"
            "pop {r4-r11, pc}\n"
            UACCEL_PURGE("uaccel_two, uaccel_rows, uaccel_part") UACCEL_HELIUM_END_MACROS);
}

UACCEL_ASSEMBLY_END

/* LSTM on int16 vectors for Arm Helium. */
struct uaccel_lstm_helium16 {
    struct uaccel_lstm layer;
    struct uaccel_fully_connected_helium16 given, kept; /* all gates' sums of an input and of a hidden state */
};

#define UACCEL_DOTS(name) name##_dots_helium
#define UACCEL_LSTM16(name) name##_helium16
#define UACCEL_LSTM16_ROW uaccel_fully_connected_helium_s16
#include "uaccel_recurrent_body.h"

#endif
