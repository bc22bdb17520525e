/* Matrix products for Arm's DSP extension, few rows: the right side is read where it lies. Packing it, as
 * uaccel_batch_matmul_dots_dsp.h does, takes as long as nine rows.
 *
 * A row of the left side is widened, less its zero point. That of the right side takes the same from all sums of a row:
 * itself times the sum of the widened row. */
#ifndef UACCEL_BATCH_MATMUL_ROWS_DSP_H
#define UACCEL_BATCH_MATMUL_ROWS_DSP_H

#include "uaccel_batch_matmul.h"
#include "uaccel_dsp.h"

/* Four elements of a row as two words, less the zero point: number 0 and 2, and then 1 and 3. Returns the sum. */
UACCEL_KERNEL int32_t uaccel_batch_matmul_rows_four(const struct uaccel_batch_matmul *p, uint32_t word, int16_t *halves,
                                                    int32_t sum)
{
    const uint32_t zero = (uint32_t)(p->lhs_zero_point & 0xFFFF) * 0x10001u;
    const uint32_t even = (uint32_t)__ssub16((int16x2_t)uaccel_dsp_even(word), (int16x2_t)zero);
    const uint32_t odd = (uint32_t)__ssub16((int16x2_t)uaccel_dsp_odd(word), (int16x2_t)zero);
    memcpy(halves, &even, 4);
    memcpy(halves + 2, &odd, 4);
    sum = __smlad((int16x2_t)even, 0x10001, sum);
    return __smlad((int16x2_t)odd, 0x10001, sum);
}

/* So many elements of a row are fours. Where the right side has fewer than four columns its last row is none of them: of
 * every other a whole word may be read. */
UACCEL_KERNEL uaccel_index uaccel_batch_matmul_rows_fours(const struct uaccel_batch_matmul *p)
{
    return (p->columns < 4 ? p->depth - 1 : p->depth) & ~3;
}

/* A row of the left side; returns what the zero point of the right side adds to each of its sums. */
UACCEL_KERNEL int32_t uaccel_batch_matmul_rows_widen(const struct uaccel_batch_matmul *p, const int8_t *row,
                                                     int16_t *halves)
{
    const uaccel_index step = p->lhs_depth_step, fours = uaccel_batch_matmul_rows_fours(p), rest = p->depth - fours;
    int32_t sum = 0;
    for (const int16_t *const end = halves + fours; halves != end; halves += 4) {
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

UACCEL_ASSEMBLY_BEGIN

/* Four columns that lie side by side; they begin `step` elements apart in each row of the right side. halves: `fours`
 * elements as words of four, and behind them `rest` in their order.
 * r0: rows of the right side, r1: step, r2: halves, r3: the end of the fours, r4 to r7: sums, r8 and r9: halves, r10 to r12:
 * bytes, lr: three steps. */
UACCEL_ASSEMBLY void uaccel_batch_matmul_rows_beside(const int8_t *from, uaccel_index step, const int16_t *halves,
                                                     uaccel_index fours, uaccel_index rest, int32_t *sums)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_products x\n" /* of two rows, in r10 and r11 */
            "pkhbt r12, r10, r11, lsl #16\n"
            "pkhtb r10, r11, r10, asr #16\n"
            "sxtb16 r11, r12\n"
            "smlad r4, r11, \\x, r4\n"
            "sxtb16 r12, r12, ror #8\n"
            "smlad r5, r12, \\x, r5\n"
            "sxtb16 r11, r10\n"
            "smlad r6, r11, \\x, r6\n"
            "sxtb16 r10, r10, ror #8\n"
            "smlad r7, r10, \\x, r7\n"
            ".endm\n"
            ".equ uaccel_rest, 36\n"
            ".equ uaccel_sums, 40\n"
            "push {r4-r11, lr}\n"
            "ldr r12, [sp, #uaccel_sums]\n"
            "ldmia r12, {r4-r7}\n"
            "add r3, r2, r3, lsl #1\n"
            "add lr, r1, r1, lsl #1\n"
            "cmp r2, r3\n"
            "beq 2f\n"
            "1: ldmia r2!, {r8, r9}\n"
            "ldr r10, [r0]\n"
            "ldr r11, [r0, r1, lsl #1]\n"
            "uaccel_products r8\n"
            "ldr r10, [r0, r1]\n"
            "ldr r11, [r0, lr]\n"
            "add r0, r0, r1, lsl #2\n"
            "uaccel_products r9\n"
            "cmp r2, r3\n"
            "bne 1b\n"
            "2: ldr r3, [sp, #uaccel_rest]\n"
            "3: subs r3, #2\n"
            "blt 4f\n"
            "ldr r8, [r2], #4\n"
            "ldr r10, [r0]\n"
            "ldr r11, [r0, r1]\n"
            "add r0, r0, r1, lsl #1\n"
            "uaccel_products r8\n"
            "b 3b\n"
            "4: adds r3, #1\n"
            "bne 5f\n"
            "ldrsh r8, [r2]\n"
            "ldr r10, [r0]\n"
            "mov r11, #0\n"
            "uaccel_products r8\n"
            "5: ldr r12, [sp, #uaccel_sums]\n"
            "stmia r12, {r4-r7}\n"
            "pop {r4-r11, pc}\n" UACCEL_PURGE("uaccel_products"));
}

UACCEL_ASSEMBLY_END

/* Products of four elements, halves of `x` and `y`, and a column whose elements lie one after the other. */
#define UACCEL_ROWS_ALONG(sum, at)                                       \
    do {                                                                 \
        const uint32_t word = uaccel_dsp_load(at);                       \
        sum = __smlad((int16x2_t)uaccel_dsp_even(word), x, sum);         \
        sum = __smlad((int16x2_t)uaccel_dsp_odd(word), y, sum);          \
    } while (0)

/* Two columns that begin `step` elements apart, and two more. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_along(const int8_t *from, const int8_t *more, uaccel_index step,
                                                  const int16_t *halves, uaccel_index fours, uaccel_index rest,
                                                  int32_t *sums)
{
    int32_t a = sums[0], b = sums[1], c = sums[2], d = sums[3];
    for (const int16_t *const end = halves + fours; halves != end; halves += 4) {
        int16x2_t words[2];
        memcpy(words, __builtin_assume_aligned(halves, 4), sizeof words); /* in one instruction */
        const int16x2_t x = words[0], y = words[1];
        UACCEL_ROWS_ALONG(a, from);
        UACCEL_ROWS_ALONG(b, from + step);
        UACCEL_ROWS_ALONG(c, more);
        UACCEL_ROWS_ALONG(d, more + step);
        from += 4;
        more += 4;
    }
    for (uaccel_index k = 0; k < rest; ++k) {
        a += halves[k] * from[k];
        b += halves[k] * from[k + step];
        c += halves[k] * more[k];
        d += halves[k] * more[k + step];
    }
    sums[0] = a;
    sums[1] = b;
    sums[2] = c;
    sums[3] = d;
}

/* Up to four columns of a row, of which some may be computed twice. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_sums(const struct uaccel_batch_matmul *p, const int8_t *from,
                                                 const int16_t *halves, uaccel_index count, int32_t *sums)
{
    const uaccel_index fours = uaccel_batch_matmul_rows_fours(p), rest = p->depth - fours;
    if (p->rhs_depth_step == 1) {
        const uaccel_index step = count > 1 ? p->rhs_column_step : 0;
        uaccel_batch_matmul_rows_along(from, from + (count - 2) * step, step, halves, fours, rest, sums);
        sums[2] = count == 3 ? sums[3] : sums[2];
    } else {
        const uaccel_index apart = count < 4 ? 1 : 0, last = p->depth - 1;
        uaccel_batch_matmul_rows_beside(from, p->rhs_depth_step, halves, fours, rest - apart, sums);
        for (uaccel_index i = 0; apart > 0 && i < count; ++i) {
            sums[i] += halves[last] * from[i + last * p->rhs_depth_step];
        }
    }
}

/* round(sum * multiplier * 2^(shift - 31)); twice a sum fits, and the shift is to the right. */
UACCEL_KERNEL int32_t uaccel_batch_matmul_rows_scaled(const struct uaccel_batch_matmul *p, int32_t sum)
{
    const int32_t high = uaccel_dsp_high(2 * sum, p->multiplier), right = -p->shift;
    return right > 0 ? (high + (high >> 31) + (1 << (right - 1))) >> right : high;
}

/* One row of the product of one pair of matrices. */
UACCEL_KERNEL void uaccel_batch_matmul_rows_one(const struct uaccel_batch_matmul *p, const int8_t *row,
                                                const int8_t *rhs, int16_t *halves, int8_t *output)
{
    const int32_t start = uaccel_batch_matmul_rows_widen(p, row, halves);
    const uaccel_index count = p->columns < 4 ? p->columns : 4;
    for (uaccel_index c = 0; c < p->columns; c += 4) {
        const uaccel_index first = c + count <= p->columns ? c : p->columns - count; /* the last ones, some over again */
        int32_t sums[4] = {start, start, start, start};
        uaccel_batch_matmul_rows_sums(p, rhs + first * p->rhs_column_step, halves, count, sums);
        for (uaccel_index i = 0; i < count; ++i) {
            const int32_t scaled = uaccel_batch_matmul_rows_scaled(p, sums[i]);
            output[first + i] = (int8_t)__builtin_arm_ssat(uaccel_add_wrapping(scaled, p->output_zero_point), 8);
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
