/* The driver of starter. All functions return 0 or a code of uaccel_accelerator.h. */
#ifndef STARTER_H
#define STARTER_H

#include <stdint.h>

/* Generated code calls these. Before an inference: is the device there, and is it one that this driver knows? */
int32_t TVMDeviceStarterActivate(void *device);
/* Before and after the calls of one layer. */
int32_t TVMDeviceStarterOpen(void *device);
int32_t TVMDeviceStarterClose(void *device);
/* After an inference, also after one that failed. */
int32_t TVMDeviceStarterDeactivate(void *device);

/* sums[r][u] = the sum of x[r][d] * weights[u][d] over all d < depth, for each row r and unit u. */
int32_t starter_multiply(const int8_t *x, const int8_t *weights, int32_t *sums, int32_t rows, int32_t depth,
                         int32_t units);

#endif
