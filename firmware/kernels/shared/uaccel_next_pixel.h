/* Where a pixel's results lie, of layers that take pixels by twos, whatever rows they are in. */
#ifndef UACCEL_NEXT_PIXEL_H
#define UACCEL_NEXT_PIXEL_H

#include "uaccel_kernel.h"

/* How far the results of the next pixel are: `pixel` elements, and those between two rows behind the last column. */
UACCEL_KERNEL uaccel_index uaccel_next_pixel(uaccel_index *column, uaccel_index width, uaccel_index pixel,
                                             uaccel_index row)
{
    if (++*column < width) {
        return pixel;
    }
    *column = 0;
    return row - (width - 1) * pixel;
}

#endif
