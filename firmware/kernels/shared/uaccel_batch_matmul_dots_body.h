/* Matrix products, int8, eight columns of the right side at a time: for one family, which UACCEL_DOTS names; included
 * once a family. */

#ifndef UACCEL_BATCH_MATMUL_DOTS_H
#define UACCEL_BATCH_MATMUL_DOTS_H

#include "uaccel_batch_matmul.h"

struct uaccel_batch_matmul_dots {
    struct uaccel_batch_matmul layer;
    uaccel_index filled;   /* bytes of a row of the left side, filled up */
    uaccel_index lhs_bytes; /* of all of the left side */
    uaccel_index packed;   /* bytes of eight packed columns */
};

/* Scratch memory: a row, eight columns, and a sum of each row. */
struct uaccel_batch_matmul_work {
    int8_t *row;
    void *columns;
    int32_t *row_sums;
};

/* A row of the left side with what may be read behind it; `copy` where it does not lie so. */
UACCEL_KERNEL const int8_t *uaccel_batch_matmul_row(const struct uaccel_batch_matmul_dots *p, const int8_t *row,
                                                    const int8_t *end, int8_t *copy)
{
    const uaccel_index depth = p->layer.depth;
    if (p->layer.lhs_depth_step != 1) {
        for (uaccel_index k = 0; k < depth; ++k) {
            copy[k] = row[k * p->layer.lhs_depth_step];
        }
        return copy;
    }
    if (p->filled == depth || end - row >= p->filled) {
        return row;
    }
    memcpy(copy, row, (size_t)depth);
    return copy;
}

#endif

/* Up to eight columns of the product. `first`: the row sums are not known yet. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_batch_matmul_columns)(
    const struct uaccel_batch_matmul_dots *p, const int8_t *lhs, const int8_t *end, uaccel_index count, bool first,
    const struct uaccel_batch_matmul_work *w, int8_t *output)
{
    const struct uaccel_batch_matmul *const layer = &p->layer;
    const int32_t zero = UACCEL_DOTS(uaccel_batch_matmul_zero)(layer);
    int32_t column_sums[8] = {0}, sums[8];
    if (layer->lhs_zero_point != 0) {
        memset(w->row, 1, (size_t)p->filled);
        UACCEL_DOTS(uaccel_batch_matmul_eight)(w->row, w->row + p->filled, w->columns, column_sums);
        for (uaccel_index i = 0; i < 8; ++i) {
            column_sums[i] = layer->depth * layer->lhs_zero_point * zero - layer->lhs_zero_point * column_sums[i];
        }
    }
    for (uaccel_index r = 0; r < layer->rows; ++r) {
        const int8_t *const row = uaccel_batch_matmul_row(p, lhs + r * layer->lhs_row_step, end, w->row);
        if (zero != 0 && first) {
            w->row_sums[r] = -zero * UACCEL_DOTS(uaccel_batch_matmul_sum)(row, layer->depth);
        }
        UACCEL_DOTS(uaccel_batch_matmul_eight)(row, row + p->filled, w->columns, sums);
        UACCEL_DOTS(uaccel_batch_matmul_finish)(layer, sums, column_sums, zero != 0 ? w->row_sums[r] : 0, count, output);
        output += layer->columns;
    }
}

/* One pair of matrices. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_batch_matmul_one)(const struct uaccel_batch_matmul_dots *p, const int8_t *lhs,
                                                        const int8_t *end, const int8_t *rhs,
                                                        const struct uaccel_batch_matmul_work *w, int8_t *output)
{
    const struct uaccel_batch_matmul *const layer = &p->layer;
    for (uaccel_index c = 0; c < layer->columns; c += 8) {
        const uaccel_index left = layer->columns - c, count = left < 8 ? left : 8;
        const int8_t *const columns = rhs + c * layer->rhs_column_step;
        if (count == 8) { /* eight are known to the compiler */
            UACCEL_DOTS(uaccel_batch_matmul_pack)(layer, columns, 8, p->packed, w->columns);
        } else {
            UACCEL_DOTS(uaccel_batch_matmul_pack)(layer, columns, count, p->packed, w->columns);
        }
        UACCEL_DOTS(uaccel_batch_matmul_columns)(p, lhs, end, count, c == 0, w, output + c);
    }
}

/* scratch: a row filled up, eight packed columns, and four bytes for each row. */
UACCEL_KERNEL void UACCEL_DOTS(uaccel_batch_matmul_s8)(const struct uaccel_batch_matmul_dots *p, const int8_t *lhs,
                                                       const int8_t *rhs, int8_t *output, void *scratch)
{
    const struct uaccel_batch_matmul *const layer = &p->layer;
    const int8_t *const end = lhs + p->lhs_bytes;
    int8_t *const columns = (int8_t *)scratch + p->filled;
    const struct uaccel_batch_matmul_work w = {scratch, columns, (int32_t *)(void *)(columns + p->packed)};
    for (uaccel_index i = 0; i < layer->batch[0]; ++i) {
        for (uaccel_index j = 0; j < layer->batch[1]; ++j) {
            for (uaccel_index k = 0; k < layer->batch[2]; ++k) {
                const int8_t *const left = lhs + i * layer->lhs_batch_step[0] + j * layer->lhs_batch_step[1] +
                                           k * layer->lhs_batch_step[2];
                const int8_t *const right = rhs + i * layer->rhs_batch_step[0] + j * layer->rhs_batch_step[1] +
                                            k * layer->rhs_batch_step[2];
                UACCEL_DOTS(uaccel_batch_matmul_one)(p, left, end, right, &w, output);
                output += layer->rows * layer->columns;
            }
        }
    }
}

#undef UACCEL_DOTS
