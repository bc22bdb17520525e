/* SVDF on int8 frames by dot products, for families that take sums one by one: UACCEL_DOTS names the family; included
 * once a family. */

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

#include "uaccel_svdf_dots_body.h"
