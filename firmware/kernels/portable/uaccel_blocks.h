/* Products of rows of floats with weights that are small integers, with a scale for each block of a row. */
#ifndef UACCEL_BLOCKS_H
#define UACCEL_BLOCKS_H

#include "uaccel_float.h"

struct uaccel_fully_connected_blocks {
    uaccel_index rows, depth, units;
    uaccel_index block; /* weights that share a scale */
};

/* The products of a block's weights, less their zero point, with `count` inputs. */
UACCEL_SHARED float uaccel_block_s8(const float *restrict input, const int8_t *restrict weights, int32_t zero_point,
                                    uaccel_index count)
{
    float sum = 0.0f;
    for (uaccel_index k = 0; k < count; ++k) {
        sum = uaccel_float_mac(sum, input[k], (float)(weights[k] - zero_point));
    }
    return sum;
}

/* The same for weights of four bits, two of them in a byte, the first in its low half. */
UACCEL_SHARED float uaccel_block_int4(const float *restrict input, const uint8_t *restrict weights, int32_t zero_point,
                                      uaccel_index count)
{
    float sum = 0.0f;
    for (uaccel_index k = 0; k < count; k += 2) {
        const uint32_t byte = weights[k / 2];
        sum = uaccel_float_mac(sum, input[k], (float)(((int32_t)(byte << 28) >> 28) - zero_point));
        if (k + 1 < count) {
            sum = uaccel_float_mac(sum, input[k + 1], (float)(((int32_t)(byte << 24) >> 28) - zero_point));
        }
    }
    return sum;
}

UACCEL_KERNEL uaccel_index uaccel_blocks_left(const struct uaccel_fully_connected_blocks *p, uaccel_index first)
{
    return p->depth - first < p->block ? p->depth - first : p->block;
}

UACCEL_KERNEL void uaccel_fully_connected_blocks_s8(const struct uaccel_fully_connected_blocks *p, const float *input,
                                                    const int8_t *weights, const float *scales,
                                                    const int8_t *zero_points, const float *bias, float *output)
{
    for (uaccel_index row = 0; row < p->rows; ++row, input += p->depth) {
        const float *scale = scales;
        const int8_t *from = weights, *zero_point = zero_points;
        for (uaccel_index c = 0; c < p->units; ++c, from += p->depth) {
            float sum = 0.0f;
            for (uaccel_index k = 0; k < p->depth; k += p->block) {
                const float part = uaccel_block_s8(input + k, from + k, *zero_point++, uaccel_blocks_left(p, k));
                sum = uaccel_float_mac(sum, part, *scale++);
            }
            *output++ = sum + bias[c];
        }
    }
}

/* Each row of weights begins with a byte of its own, and each block as well. */
UACCEL_KERNEL void uaccel_fully_connected_blocks_int4(const struct uaccel_fully_connected_blocks *p,
                                                      const float *input, const uint8_t *weights, const float *scales,
                                                      const int8_t *zero_points, const float *bias, float *output)
{
    for (uaccel_index row = 0; row < p->rows; ++row, input += p->depth) {
        const float *scale = scales;
        const int8_t *zero_point = zero_points;
        const uint8_t *from = weights;
        for (uaccel_index c = 0; c < p->units; ++c, from += (p->depth + 1) / 2) {
            float sum = 0.0f;
            for (uaccel_index k = 0; k < p->depth; k += p->block) {
                const uaccel_index count = uaccel_blocks_left(p, k);
                const float part = uaccel_block_int4(input + k, from + k / 2, *zero_point++, count);
                sum = uaccel_float_mac(sum, part, *scale++);
            }
            *output++ = sum + bias[c];
        }
    }
}

#endif
