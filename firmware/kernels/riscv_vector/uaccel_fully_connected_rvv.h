/* Fully connected for RISC-V's vector extension, 32 units of three rows or 16 of six at a time: int8. The pixels
 * of a pointwise convolution are such rows, too. */
#ifndef UACCEL_FULLY_CONNECTED_RVV_H
#define UACCEL_FULLY_CONNECTED_RVV_H

#include "uaccel_rvv.h"

struct uaccel_fully_connected_rvv {
    uaccel_index rows, depth, units;
    struct uaccel_rvv_finish finish;
};

UACCEL_SHARED void uaccel_fully_connected_rvv_s8(const struct uaccel_fully_connected_rvv *p, const int8_t *input,
                                                 const int8_t *weights, const int32_t *constants, int8_t *output)
{
    const struct uaccel_rvv_block block = {&p->finish, weights, constants, p->depth, p->units, 0};
    uaccel_rvv_channels(block, input, p->rows, output);
}

#endif
