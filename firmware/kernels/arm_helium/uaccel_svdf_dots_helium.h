/* SVDF for Arm Helium. */
#ifndef UACCEL_SVDF_DOTS_HELIUM_H
#define UACCEL_SVDF_DOTS_HELIUM_H

#include "uaccel_dots_helium.h"
#include "uaccel_svdf.h"

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

#define UACCEL_DOTS(name) name##_dots_helium
#include "uaccel_svdf_dots_body.h"
#undef UACCEL_DOTS

#endif
