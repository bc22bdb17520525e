/* The matrix product for one element type; included by uaccel_batch_matmul.h, once a type. */

UACCEL_KERNEL UACCEL_ELEMENT UACCEL_FN(uaccel_batch_matmul_element)(const struct uaccel_batch_matmul *p,
                                                                    const UACCEL_ELEMENT *row,
                                                                    const UACCEL_ELEMENT *column)
{
    const int32_t highest = (INT32_C(1) << (8 * (int32_t)sizeof(UACCEL_ELEMENT) - 1)) - 1;
    UACCEL_ACCUMULATOR acc = 0;
    for (uaccel_index k = 0; k < p->depth; ++k) {
        const int32_t left = row[k * p->lhs_depth_step] - p->lhs_zero_point;
        const int32_t right = column[k * p->rhs_depth_step] - p->rhs_zero_point;
        acc = UACCEL_ADD(acc, left * right);
    }
    const int32_t scaled = UACCEL_REQUANTISE(acc, p->multiplier, p->shift);
    return (UACCEL_ELEMENT)uaccel_finish(scaled, p->output_zero_point, -highest - 1, highest);
}

/* One pair of matrices; returns where the next product goes. */
UACCEL_KERNEL UACCEL_ELEMENT *UACCEL_FN(uaccel_batch_matmul_one)(const struct uaccel_batch_matmul *p,
                                                                 const UACCEL_ELEMENT *lhs,
                                                                 const UACCEL_ELEMENT *rhs, UACCEL_ELEMENT *output)
{
    for (uaccel_index r = 0; r < p->rows; ++r) {
        for (uaccel_index c = 0; c < p->columns; ++c) {
            *output++ = UACCEL_FN(uaccel_batch_matmul_element)(p, lhs, rhs + c * p->rhs_column_step);
        }
        lhs += p->lhs_row_step;
    }
    return output;
}

UACCEL_KERNEL void UACCEL_FN(uaccel_batch_matmul)(const struct uaccel_batch_matmul *p, const UACCEL_ELEMENT *lhs,
                                                  const UACCEL_ELEMENT *rhs, UACCEL_ELEMENT *output)
{
    for (uaccel_index i = 0; i < p->batch[0]; ++i) {
        for (uaccel_index j = 0; j < p->batch[1]; ++j) {
            for (uaccel_index k = 0; k < p->batch[2]; ++k) {
                output = UACCEL_FN(uaccel_batch_matmul_one)(
                    p, lhs + i * p->lhs_batch_step[0] + j * p->lhs_batch_step[1] + k * p->lhs_batch_step[2],
                    rhs + i * p->rhs_batch_step[0] + j * p->rhs_batch_step[1] + k * p->rhs_batch_step[2], output);
            }
        }
    }
}
