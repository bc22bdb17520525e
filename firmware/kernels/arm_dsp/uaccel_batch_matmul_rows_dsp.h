/* Matrix products for Arm's DSP extension, few rows: the right side is read where it lies. Packing it, as
 * uaccel_batch_matmul_dots_dsp.h does, takes as long as nine rows.
 *
 * A row of the left side is widened, less its zero point. That of the right side takes the same from all sums of a row:
 * itself times the sum of the widened row. */
#ifndef UACCEL_BATCH_MATMUL_ROWS_DSP_H
#define UACCEL_BATCH_MATMUL_ROWS_DSP_H

#include "uaccel_batch_matmul.h"
#include "uaccel_dsp.h"

/* Four elements of a row as two words, less the zero point: in their order, or where the elements of a column lie one
 * after the other in that of uaccel_dsp_even and uaccel_dsp_odd. Returns the sum. */
UACCEL_KERNEL int32_t uaccel_batch_matmul_rows_four(const struct uaccel_batch_matmul *p, uint32_t word, int16_t *halves,
                                                    int32_t sum)
{
    const uint32_t zero = (uint32_t)(p->lhs_zero_point & 0xFFFF) * 0x10001u;
    const uint32_t even = (uint32_t)__ssub16((int16x2_t)uaccel_dsp_even(word), (int16x2_t)zero);
    const uint32_t odd = (uint32_t)__ssub16((int16x2_t)uaccel_dsp_odd(word), (int16x2_t)zero);
    const bool along = p->rhs_depth_step == 1;
    const uint32_t first = along ? even : (even & 0xFFFFu) | odd << 16;
    const uint32_t second = along ? odd : even >> 16 | (odd & 0xFFFF0000u);
    memcpy(halves, &first, 4);
    memcpy(halves + 2, &second, 4);
    sum = __smlad((int16x2_t)even, 0x10001, sum);
    return __smlad((int16x2_t)odd, 0x10001, sum);
}

/* A row of the left side; returns what the zero point of the right side adds to each of its sums. */
UACCEL_KERNEL int32_t uaccel_batch_matmul_rows_widen(const struct uaccel_batch_matmul *p, const int8_t *row,
                                                     int16_t *halves)
{
    const uaccel_index step = p->lhs_depth_step, rest = p->depth & 3;
    int32_t sum = 0;
    for (const int16_t *const end = halves + (p->depth - rest); halves != end; halves += 4) {
        uint8_t bytes[4];
        for (uaccel_index i = 0; i < 4; ++i) {
            bytes[i] = (uint8_t)row[i * step];
        }
        sum = uaccel_batch_matmul_rows_four(p, uaccel_dsp_load(bytes), halves, sum);
        row += 4 * step;
    }
    for (uaccel_index i = 0; i < rest; ++i) {
        halves[i] = (int16_t)(row[i * step] - p->lhs_zero_point);
        sum += halves[i];
    }
    return -p->rhs_zero_point * sum;
}

/* Products of one element, a half of `x`, and four columns side by side. */
#define UACCEL_ROWS_FOUR(from, x, half)                                                             \
    do {                                                                                            \
        const uint32_t word = uaccel_dsp_load(from);                                                \
        const int16x2_t even = (int16x2_t)uaccel_dsp_even(word), odd = (int16x2_t)uaccel_dsp_odd(word); \
        a = __smlab##half(even, x, a);                                                              \
        b = __smlab##half(odd, x, b);                                                               \
        c = __smlat##half(even, x, c);                                                              \
        d = __smlat##half(odd, x, d);                                                               \
    } while (0)

/* Four columns that lie side by side; they begin `step` elements apart in each row of the right side. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_beside(const int8_t *from, uaccel_index step, const int16_t *halves,
                                                   uaccel_index depth, int32_t *sums)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (const int16_t *const end = halves + (depth & ~3); halves != end; halves += 4) {
        const int16x2_t x = (int16x2_t)uaccel_dsp_load(halves), y = (int16x2_t)uaccel_dsp_load(halves + 2);
        UACCEL_ROWS_FOUR(from, x, b);
        UACCEL_ROWS_FOUR(from + step, x, t);
        UACCEL_ROWS_FOUR(from + 2 * step, y, b);
        UACCEL_ROWS_FOUR(from + 3 * step, y, t);
        from += 4 * step;
    }
    for (uaccel_index k = 0; k < (depth & 3); ++k) {
        const int16x2_t x = halves[k];
        UACCEL_ROWS_FOUR(from, x, b);
        from += step;
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* Two columns, whose elements lie one after the other. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_along(const int8_t *from, const int8_t *other, const int16_t *halves,
                                                  uaccel_index depth, int32_t *sums)
{
    int32_t a = sums[0], b = sums[1];
    for (const int16_t *const end = halves + (depth & ~3); halves != end; halves += 4) {
        const int16x2_t x = (int16x2_t)uaccel_dsp_load(halves), y = (int16x2_t)uaccel_dsp_load(halves + 2);
        const uint32_t word = uaccel_dsp_load(from), more = uaccel_dsp_load(other);
        a = __smlad((int16x2_t)uaccel_dsp_even(word), x, a);
        a = __smlad((int16x2_t)uaccel_dsp_odd(word), y, a);
        b = __smlad((int16x2_t)uaccel_dsp_even(more), x, b);
        b = __smlad((int16x2_t)uaccel_dsp_odd(more), y, b);
        from += 4;
        other += 4;
    }
    for (uaccel_index k = 0; k < (depth & 3); ++k) {
        a += halves[k] * from[k];
        b += halves[k] * other[k];
    }
    sums[0] = a;
    sums[1] = b;
}

/* Up to four columns of a row, of which one may be computed twice. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_sums(const struct uaccel_batch_matmul *p, const int8_t *from,
                                                 const int16_t *halves, uaccel_index count, int32_t *sums)
{
    const uaccel_index step = p->rhs_column_step;
    if (p->rhs_depth_step == 1) {
        for (uaccel_index i = 0; i < count; i += 2) {
            const int8_t *const column = from + i * step;
            uaccel_batch_matmul_rows_along(column, i + 1 < count ? column + step : column, halves, p->depth, sums + i);
        }
    } else if (count == 4) {
        uaccel_batch_matmul_rows_beside(from, p->rhs_depth_step, halves, p->depth, sums);
    } else {
        for (uaccel_index i = 0; i < count; ++i) {
            for (uaccel_index k = 0; k < p->depth; ++k) {
                sums[i] += halves[k] * from[i + k * p->rhs_depth_step];
            }
        }
    }
}

/* One row of the product of one pair of matrices. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_one(const struct uaccel_batch_matmul *p, const int8_t *row,
                                                const int8_t *rhs, int16_t *halves, int8_t *output)
{
    const int32_t start = uaccel_batch_matmul_rows_widen(p, row, halves);
    for (uaccel_index c = 0; c < p->columns; c += 4) {
        const uaccel_index count = p->columns - c < 4 ? p->columns - c : 4;
        int32_t sums[4] = {start, start, start, start};
        uaccel_batch_matmul_rows_sums(p, rhs + c * p->rhs_column_step, halves, count, sums);
        for (uaccel_index i = 0; i < count; ++i) {
            const int32_t scaled = uaccel_requantise(sums[i], p->multiplier, p->shift);
            output[c + i] = (int8_t)__builtin_arm_ssat(uaccel_add_wrapping(scaled, p->output_zero_point), 8);
        }
    }
}

/* scratch: a widened row. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_dsp_s8(const struct uaccel_batch_matmul *p, const int8_t *lhs,
                                                   const int8_t *rhs, int8_t *output, void *scratch)
{
    for (uaccel_index i = 0; i < p->batch[0]; ++i) {
        for (uaccel_index j = 0; j < p->batch[1]; ++j) {
            for (uaccel_index k = 0; k < p->batch[2]; ++k) {
                const int8_t *const left =
                    lhs + i * p->lhs_batch_step[0] + j * p->lhs_batch_step[1] + k * p->lhs_batch_step[2];
                const int8_t *const right =
                    rhs + i * p->rhs_batch_step[0] + j * p->rhs_batch_step[1] + k * p->rhs_batch_step[2];
                for (uaccel_index r = 0; r < p->rows; ++r) {
                    uaccel_batch_matmul_rows_one(p, left + r * p->lhs_row_step, right, scratch, output);
                    output += p->columns;
                }
            }
        }
    }
}

#endif
