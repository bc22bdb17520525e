/* Matrix products for Arm Helium: bytes as they are; the sums of rows and columns make up for zero points. */
#ifndef UACCEL_BATCH_MATMUL_DOTS_HELIUM_H
#define UACCEL_BATCH_MATMUL_DOTS_HELIUM_H

#include "uaccel_batch_matmul.h"
#include "uaccel_dots_helium.h"

/* What of the right side's zero point is left to do: all. */
UACCEL_KERNEL int32_t uaccel_batch_matmul_zero_dots_helium(const struct uaccel_batch_matmul *p)
{
    return p->rhs_zero_point;
}

UACCEL_KERNEL int32_t uaccel_batch_matmul_sum_dots_helium(const int8_t *row, uaccel_index depth)
{
    int32_t sum = 0;
    for (; depth > 0; depth -= 16) {
        sum = vaddvaq_s8(sum, vldrbq_z_s8(row, vctp8q((uint32_t)depth)));
        row += 16;
    }
    return sum;
}

/* Vector by vector, those of eight columns. */
UACCEL_KERNEL void uaccel_batch_matmul_pack_dots_helium(const struct uaccel_batch_matmul *p, const int8_t *columns,
                                                        uaccel_index count, uaccel_index bytes, void *packed)
{
    int8_t *const to = packed;
    if (count < 8 || (p->depth & 15) != 0) {
        uaccel_helium_fill(to, 0, bytes);
    }
    if (p->rhs_depth_step == 1) {
        for (uaccel_index c = 0; c < count; ++c) {
            for (uaccel_index k = 0; k < p->depth; k += 16) {
                const uaccel_index left = p->depth - k;
                uaccel_helium_copy(to + 8 * k + 16 * c, columns + c * p->rhs_column_step + k, left < 16 ? left : 16);
            }
        }
        return;
    }
    const uint16x8_t places = vmulq_n_u16(vidupq_n_u16(0, 1), 16);
    const mve_pred16_t some = vctp16q((uint32_t)count);
    for (uaccel_index k = 0; k < p->depth; ++k) {
        const int16x8_t row = vldrbq_z_s16(columns + k * p->rhs_depth_step, some);
        vstrbq_scatter_offset_p_s16(to + (k >> 4) * 128 + (k & 15), places, row, some);
    }
}

UACCEL_KERNEL void uaccel_batch_matmul_eight_dots_helium(const int8_t *input, const int8_t *end, const void *columns,
                                                         int32_t *sums)
{
    uaccel_eight_dots_helium(input, end, columns, sums);
}

UACCEL_KERNEL void uaccel_batch_matmul_finish_dots_helium(const struct uaccel_batch_matmul *p, const int32_t *sums,
                                                          const int32_t *column, int32_t row, uaccel_index count,
                                                          int8_t *output)
{
    for (; count > 0; count -= 4) {
        int32x4_t value = vaddq_n_s32(vaddq_s32(vldrwq_s32(sums), vldrwq_s32(column)), row);
        value = vaddq_n_s32(uaccel_requantise_helium(value, p->multiplier, p->shift), p->output_zero_point);
        value = vminq_s32(vmaxq_s32(value, vdupq_n_s32(INT8_MIN)), vdupq_n_s32(INT8_MAX));
        vstrbq_p_s32(output, value, vctp32q((uint32_t)count));
        sums += 4;
        column += 4;
        output += 4;
    }
}

#define UACCEL_DOTS(name) name##_dots_helium
#include "uaccel_batch_matmul_dots_body.h"

#endif
