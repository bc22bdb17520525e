/* Matrix products, int16, four columns of the right side at a time: for one family, which UACCEL_MATMUL16 names;
 * included once a family. Sums have 64 bits: two products may already need more than 32. */

/* One pair of matrices. */
UACCEL_KERNEL void UACCEL_MATMUL16(uaccel_batch_matmul16_one)(const struct uaccel_batch_matmul16 *p, const int16_t *lhs,
                                                              const int16_t *end, const int16_t *rhs, int16_t *output,
                                                              int16_t *packed)
{
    const struct uaccel_batch_matmul *const layer = &p->layer;
    const int32_t multiplier = layer->multiplier, shift = layer->shift, zero_point = layer->output_zero_point;
    for (uaccel_index c = 0; c < layer->columns; c += 4) {
        const uaccel_index left = layer->columns - c, count = left < 4 ? left : 4;
        int16_t *target = output + c;
        UACCEL_MATMUL16(uaccel_batch_matmul16_pack)(p, rhs + c * layer->rhs_column_step, count, packed);
        for (uaccel_index r = 0; r < layer->rows; ++r) {
            const int16_t *const from = lhs + r * layer->lhs_row_step;
            const int16_t *const row = uaccel_batch_matmul16_row(p, from, end, packed + p->packed);
            int64_t sums[4];
            UACCEL_MATMUL16(uaccel_batch_matmul16_four)(row, row + p->filled, packed, sums);
            for (uaccel_index i = 0; i < count; ++i) {
                const int32_t scaled = uaccel_requantise_wide(sums[i], multiplier, shift);
                target[i] = (int16_t)uaccel_finish(scaled, zero_point, INT16_MIN, INT16_MAX);
            }
            target += layer->columns;
        }
    }
}

/* scratch: four packed columns, and a row filled up. */
UACCEL_KERNEL void UACCEL_MATMUL16(uaccel_batch_matmul_s16)(const struct uaccel_batch_matmul16 *p, const int16_t *lhs,
                                                            const int16_t *rhs, int16_t *output, void *scratch)
{
    const struct uaccel_batch_matmul *const layer = &p->layer;
    const int16_t *const end = lhs + p->lhs_count;
    for (uaccel_index i = 0; i < layer->batch[0]; ++i) {
        for (uaccel_index j = 0; j < layer->batch[1]; ++j) {
            for (uaccel_index k = 0; k < layer->batch[2]; ++k) {
                const int16_t *const left = lhs + i * layer->lhs_batch_step[0] + j * layer->lhs_batch_step[1] +
                                            k * layer->lhs_batch_step[2];
                const int16_t *const right = rhs + i * layer->rhs_batch_step[0] + j * layer->rhs_batch_step[1] +
                                             k * layer->rhs_batch_step[2];
                UACCEL_MATMUL16(uaccel_batch_matmul16_one)(p, left, end, right, output, scratch);
                output += layer->rows * layer->columns;
            }
        }
    }
}

#undef UACCEL_MATMUL16
