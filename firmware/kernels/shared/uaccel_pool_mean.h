/* Means by multiplication, where a CPU multiplies faster than it divides, or has no division of vectors. */
#ifndef UACCEL_POOL_MEAN_H
#define UACCEL_POOL_MEAN_H

#include "uaccel_pool.h"

/* What a sum is multiplied by for its mean: round(sum * multiplier / 2^31). The multiplier is a little more than
 * 2^31 / count, so that a half of either sign goes away from zero. That is exact while |sum| * count is below 2^30. */
struct uaccel_pool_count {
    int32_t count;
    int32_t multiplier; /* 0: sums may be too large; divide them */
};

/* The largest number of elements of so many bits that is divided by multiplication. */
#define UACCEL_POOL_MOST(bits) ((bits) == 8 ? 2896 : 181)

UACCEL_KERNEL struct uaccel_pool_count uaccel_pool_count(int32_t count, int32_t most)
{
    struct uaccel_pool_count c = {count, 0};
    if (count == 1) {
        c.multiplier = INT32_MAX;
    } else if (count <= most) {
        c.multiplier = (int32_t)(UINT32_C(0x80000000) / (uint32_t)count + 1);
    }
    return c;
}

/* Rows of bytes of a window that 16 bits can add up: all of them, or one. */
UACCEL_KERNEL uaccel_index uaccel_pool_band(uaccel_index height, uaccel_index width)
{
    return height * width > 255 ? 1 : height;
}

#endif
