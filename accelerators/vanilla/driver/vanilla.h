/* The driver of vanilla. All functions return 0 or a code of uaccel_accelerator.h. */
#ifndef VANILLA_H
#define VANILLA_H

#include <stdint.h>

int32_t TVMDeviceVanillaActivate(void *device);
int32_t TVMDeviceVanillaOpen(void *device);
int32_t TVMDeviceVanillaClose(void *device);
int32_t TVMDeviceVanillaDeactivate(void *device);

/* output[k][y][x] = sum of input[c][y + ky - before][x + kx - before] * weights[k][c][ky][kx], with zeros around the
 * input: (extent of the kernel - 1) / 2 before it. The output is as high and as wide as the input. */
int32_t vanilla_conv2d(const float *input, const float *weights, float *output, int32_t in_channels, int32_t height,
                       int32_t width, int32_t out_channels, int32_t kernel_height, int32_t kernel_width);

#endif
