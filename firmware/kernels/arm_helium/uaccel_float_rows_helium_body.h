/* Sums of products with Arm Helium, one row or four by four columns of weights.
 *
 * Included once for each type in which weights lie: UACCEL_FLOAT_WEIGHT, of which UACCEL_FLOAT_FOUR makes a vector.
 * UACCEL_FLOAT_ALONE_FN names what computes them without Helium. */

UACCEL_SHARED void UACCEL_FN(uaccel_float_row)(const float *restrict row, const UACCEL_FLOAT_WEIGHT *restrict weights,
                                           uaccel_index depth, float *restrict sums)
{
    float32x4_t sum = vdupq_n_f32(0);
    const UACCEL_FLOAT_WEIGHT *weight = weights;
    for (uaccel_index k = 0; k < depth; ++k, weight += 4) {
        sum = uaccel_float_macs(sum, UACCEL_FLOAT_FOUR(weight), row[k]);
    }
    vst1q_f32(sums, sum);
    if (uaccel_float_is_flushed(sum, sum, sum, sum)) {
        UACCEL_FLOAT_ALONE_FN(uaccel_float_row)(row, weights, depth, sums);
    }
}

UACCEL_SHARED void UACCEL_FN(uaccel_float_rows)(const float *restrict row, const UACCEL_FLOAT_WEIGHT *restrict weights,
                                            uaccel_index depth, float *restrict sums)
{
    const float *row0 = row, *row1 = row0 + depth, *row2 = row1 + depth, *row3 = row2 + depth;
    const UACCEL_FLOAT_WEIGHT *weight = weights;
    float32x4_t sum0 = vdupq_n_f32(0), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (uaccel_index k = 0; k < depth; ++k, weight += 4) {
        const float32x4_t four = UACCEL_FLOAT_FOUR(weight);
        sum0 = uaccel_float_macs(sum0, four, *row0++);
        sum1 = uaccel_float_macs(sum1, four, *row1++);
        sum2 = uaccel_float_macs(sum2, four, *row2++);
        sum3 = uaccel_float_macs(sum3, four, *row3++);
    }
    vst1q_f32(sums, sum0);
    vst1q_f32(sums + 4, sum1);
    vst1q_f32(sums + 8, sum2);
    vst1q_f32(sums + 12, sum3);
    if (uaccel_float_is_flushed(sum0, sum1, sum2, sum3)) {
        UACCEL_FLOAT_ALONE_FN(uaccel_float_rows)(row, weights, depth, sums);
    }
}

#undef UACCEL_FN
#undef UACCEL_FLOAT_ALONE_FN
#undef UACCEL_FLOAT_WEIGHT
#undef UACCEL_FLOAT_FOUR
