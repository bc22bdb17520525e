/* LSTM for Arm Helium: four units at a time. */
#ifndef UACCEL_LSTM_DOTS_HELIUM_H
#define UACCEL_LSTM_DOTS_HELIUM_H

#include "uaccel_dots_helium.h"
#include "uaccel_lstm.h"

/* uaccel_sigmoid16 of four elements. */
UACCEL_KERNEL int32x4_t uaccel_sigmoid16_helium(const struct uaccel_sigmoid16 *p, const uint16_t *points, int32x4_t x)
{
    const int32_t rounding = p->right_shift > 0 ? 1 << (p->right_shift - 1) : 0;
    x = vshlq_r_s32(vmlasq_n_s32(x, vdupq_n_s32(p->multiplier), rounding), -p->right_shift);
    const int32x4_t magnitude = vabsq_s32(x);
    const int32x4_t segment = vshlq_r_s32(magnitude, -p->fraction_bits);
    const int32x4_t rest = vandq_s32(magnitude, vdupq_n_s32((1 << p->fraction_bits) - 1));
    const uint32x4_t known = vreinterpretq_u32_s32(vminq_s32(segment, vdupq_n_s32(254)));
    const int32x4_t low = vreinterpretq_s32_u32(vldrhq_gather_shifted_offset_u32(points, known));
    const int32x4_t high = vreinterpretq_s32_u32(vldrhq_gather_shifted_offset_u32(points + 1, known));
    int32x4_t value = vaddq_s32(vshlq_r_s32(low, p->fraction_bits), vmulq_s32(rest, vsubq_s32(high, low)));
    value = vpselq_s32(vdupq_n_s32(p->saturated), value, vcmpgtq_n_s32(segment, 254));
    const int32x4_t mirrored = vsubq_s32(vdupq_n_s32(p->mirror - 1), value);
    value = vpselq_s32(mirrored, vsubq_n_s32(value, p->origin), vcmpltq_n_s32(x, 0));
    return vrshlq_n_s32(value, -p->shift);
}

UACCEL_KERNEL int32x4_t uaccel_clamp16_helium(int32x4_t x)
{
    return vminq_s32(vmaxq_s32(x, vdupq_n_s32(INT16_MIN)), vdupq_n_s32(INT16_MAX));
}

/* From the gates' sums to the cell and what is shown of it. */
UACCEL_KERNEL void uaccel_lstm_show_dots_helium(const struct uaccel_lstm *p, const uint16_t *points, int8_t *output,
                                                int8_t *hidden, int16_t *cell, const int16_t *gates)
{
    const struct uaccel_sigmoid16 logistic = uaccel_lstm_logistic_curve(p->units);
    const struct uaccel_sigmoid16 tanh = uaccel_lstm_tanh_curve(p->units, 3, 0);
    const struct uaccel_sigmoid16 shown = uaccel_lstm_tanh_curve(p->units, p->tanh_multiplier, p->tanh_right_shift);
    for (uaccel_index u = 0; u < p->units; u += 4) {
        const mve_pred16_t some = vctp32q((uint32_t)(p->units - u));
        int32x4_t gate[4];
        for (uaccel_index i = 0; i < 4; ++i) {
            const int32x4_t sum = vldrhq_z_s32(gates + i * p->units + u, some);
            gate[i] = uaccel_sigmoid16_helium(i == 2 ? &tanh : &logistic, points, sum);
        }
        const int32x4_t before = vmulq_s32(gate[1], vldrhq_z_s32(cell + u, some));
        const int32x4_t kept = uaccel_requantise_helium(before, p->keep_multiplier, p->keep_shift);
        const int32x4_t more = vmulq_s32(gate[0], gate[2]);
        const int32x4_t taken = uaccel_requantise_helium(more, p->take_multiplier, p->take_shift);
        int32x4_t x = vaddq_s32(uaccel_clamp16_helium(kept), uaccel_clamp16_helium(taken));
        x = uaccel_clamp16_helium(x);
        if (p->cell_clip > 0) {
            x = vminq_s32(vmaxq_s32(x, vdupq_n_s32(-p->cell_clip)), vdupq_n_s32(p->cell_clip));
        }
        vstrhq_p_s32(cell + u, x, some);
        x = vmulq_s32(uaccel_sigmoid16_helium(&shown, points, x), gate[3]);
        x = uaccel_requantise_helium(x, p->give_multiplier, p->give_shift);
        x = vaddq_n_s32(x, p->hidden_zero_point);
        x = vminq_s32(vmaxq_s32(x, vdupq_n_s32(p->hidden_min)), vdupq_n_s32(p->hidden_max));
        vstrbq_p_s32(hidden + u, x, some);
        vstrbq_p_s32(output + u, x, some);
    }
}

#define UACCEL_DOTS(name) name##_dots_helium
#include "uaccel_lstm_dots_body.h"
#undef UACCEL_DOTS

#endif
