/* Products of two batches of matrices, portable C. Either side may lie transposed. */
#ifndef UACCEL_BATCH_MATMUL_H
#define UACCEL_BATCH_MATMUL_H

#include "uaccel_fixedpoint.h"
#include "uaccel_float32.h"

struct uaccel_batch_matmul {
    uaccel_index batch[3];
    uaccel_index lhs_batch_step[3], rhs_batch_step[3]; /* in elements; 0 where one matrix serves all */
    uaccel_index rows, depth, columns;
    uaccel_index lhs_row_step, lhs_depth_step;
    uaccel_index rhs_depth_step, rhs_column_step;
    int32_t lhs_zero_point, rhs_zero_point, output_zero_point;
    int32_t multiplier, shift;
};

#define UACCEL_BODY "uaccel_batch_matmul_body.h"
#define UACCEL_TYPES 4
#include "uaccel_types.h"

#endif
