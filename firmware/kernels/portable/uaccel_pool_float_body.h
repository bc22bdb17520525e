/* What a window of floats comes to: included by uaccel_pool_float.h, once a kind, which UACCEL_FN names.
 *
 * It begins with UACCEL_POOL_FLOAT_BEGIN, and UACCEL_POOL_FLOAT_NEXT is what becomes of it with another element. */

/* Four channels. */
UACCEL_SHARED void UACCEL_FN(uaccel_pool_float_four)(const struct uaccel_pool_float_taps *taps,
                                                     const float *restrict input, float *restrict results)
{
    float result0 = UACCEL_POOL_FLOAT_BEGIN, result1 = result0, result2 = result0, result3 = result0;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            result0 = UACCEL_POOL_FLOAT_NEXT(result0, tap[0]);
            result1 = UACCEL_POOL_FLOAT_NEXT(result1, tap[1]);
            result2 = UACCEL_POOL_FLOAT_NEXT(result2, tap[2]);
            result3 = UACCEL_POOL_FLOAT_NEXT(result3, tap[3]);
            tap += taps->column_step;
        }
        input += taps->row_step;
    }
    results[0] = result0;
    results[1] = result1;
    results[2] = result2;
    results[3] = result3;
}

UACCEL_SHARED float UACCEL_FN(uaccel_pool_float_one)(const struct uaccel_pool_float_taps *taps,
                                                     const float *restrict input)
{
    float result = UACCEL_POOL_FLOAT_BEGIN;
    for (uaccel_index ky = taps->rows; ky > 0; --ky) {
        const float *tap = input;
        for (uaccel_index kx = taps->columns; kx > 0; --kx) {
            result = UACCEL_POOL_FLOAT_NEXT(result, *tap);
            tap += taps->column_step;
        }
        input += taps->row_step;
    }
    return result;
}

#undef UACCEL_FN
#undef UACCEL_POOL_FLOAT_BEGIN
#undef UACCEL_POOL_FLOAT_NEXT
