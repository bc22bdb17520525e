/* Sums of products, one row or four by four columns of weights.
 *
 * Included once for each type in which weights lie: UACCEL_FLOAT_WEIGHT.
 * UACCEL_FLOAT_WIDE makes two floats of two of them. */

/* One row of `depth` elements with four columns of weights, that lie side by side. */
UACCEL_SHARED void UACCEL_FN(uaccel_float_row)(const float *restrict row, const UACCEL_FLOAT_WEIGHT *restrict weights,
                                               uaccel_index depth, float *restrict sums)
{
    UACCEL_FLOAT_BEGIN(0);
    for (const float *const end = row + depth; row != end; ++row, weights += 4) {
        float weight0, weight1, weight2, weight3;
        UACCEL_FLOAT_WIDE(weights, &weight0, &weight1);
        UACCEL_FLOAT_WIDE(weights + 2, &weight2, &weight3);
        UACCEL_FLOAT_TAKE(0, *row)
    }
    UACCEL_FLOAT_END(0)
}

/* Four rows, `depth` elements from each other: a weight serves all of them. */
UACCEL_SHARED void UACCEL_FN(uaccel_float_rows)(const float *restrict row, const UACCEL_FLOAT_WEIGHT *restrict weights,
                                                uaccel_index depth, float *restrict sums)
{
    const float *restrict row1 = row + depth, *restrict row2 = row1 + depth, *restrict row3 = row2 + depth;
    UACCEL_FLOAT_BEGIN(0);
    UACCEL_FLOAT_BEGIN(1);
    UACCEL_FLOAT_BEGIN(2);
    UACCEL_FLOAT_BEGIN(3);
    for (const float *const end = row1; row != end; weights += 4) {
        float weight0, weight1, weight2, weight3;
        UACCEL_FLOAT_WIDE(weights, &weight0, &weight1);
        UACCEL_FLOAT_WIDE(weights + 2, &weight2, &weight3);
        UACCEL_FLOAT_TAKE(0, *row++)
        UACCEL_FLOAT_TAKE(1, *row1++)
        UACCEL_FLOAT_TAKE(2, *row2++)
        UACCEL_FLOAT_TAKE(3, *row3++)
    }
    UACCEL_FLOAT_END(0)
    UACCEL_FLOAT_END(1)
    UACCEL_FLOAT_END(2)
    UACCEL_FLOAT_END(3)
}

#undef UACCEL_FN
#undef UACCEL_FLOAT_WEIGHT
#undef UACCEL_FLOAT_WIDE
