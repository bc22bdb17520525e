/* The driver of nuc_fpga. All functions return 0 or a code of uaccel_accelerator.h. */
#ifndef NUC_FPGA_H
#define NUC_FPGA_H

#include <stdint.h>

/* Look whether the device is there and is one that this driver knows; the driver works with it from now on. */
int32_t TVMDeviceNucFpgaActivate(void *device);
/* Before and after the calls below: whether the device raises its interrupt when a job has ended. */
int32_t TVMDeviceNucFpgaOpen(void *device);
int32_t TVMDeviceNucFpgaClose(void *device);
/* The driver forgets the device. */
int32_t TVMDeviceNucFpgaDeactivate(void *device);

/* Sums of products, modulo 2^32: out[n][k][y][x], where feature_map is [batch][in_ch][in_height][in_width], kernel is
 * [kernel_number][in_ch / group][kernel_height][kernel_width], and zeros lie around each channel: pad_height rows above
 * and below, pad_width columns left and right. group = in_ch is a depthwise convolution. */
int nuc_fpga_conv2d(int8_t* feature_map, int8_t* kernel, int* out, int batch, int in_ch, int in_height, int in_width,
                    int kernel_number, int group, int pad_height, int pad_width, int kernel_height, int kernel_width,
                    int stride_height, int stride_width);

/* The same for rows: out[n][k] is the product of feature_map[n] and kernel[k], of in_ch numbers each, k < out_ch. */
int nuc_fpga_dense(int8_t* feature_map, int8_t* kernel, int* out, int batch, int in_ch, int out_ch);

#endif
