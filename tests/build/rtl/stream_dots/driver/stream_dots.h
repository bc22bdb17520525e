/* The driver of stream_dots. All functions return 0 or a code of uaccel_accelerator.h. */
#ifndef STREAM_DOTS_H
#define STREAM_DOTS_H

#include <stdint.h>

int32_t TVMDeviceStreamDotsActivate(void *device);

/* sums[row][unit] = x[row] . weights[unit]; depth is a multiple of four, 1024 at most. */
int32_t stream_dots_multiply(const int8_t *x, const int8_t *weights, int32_t *sums, int32_t rows, int32_t depth,
                             int32_t units);

#endif
