/* npu_tiny's driver, as generated code calls it. Functions return 0 or a code of uaccel_accelerator.h. */
#ifndef NPU_TINY_H
#define NPU_TINY_H

#include <stdint.h>

int32_t TVMDeviceNpuTinyActivate(void *device);
int32_t TVMDeviceNpuTinyOpen(void *device);
int32_t TVMDeviceNpuTinyClose(void *device);
int32_t TVMDeviceNpuTinyDeactivate(void *device);

/* Between Open and Close: the memory that the next stream knows by this number, below 64. `is_written`: the device
 * writes there; 16 of them at most. */
int32_t npu_tiny_place(uint32_t number, const void *memory, uint32_t bytes, uint32_t is_written);

/* Play a stream, to its end; so many layers of the model are counted as computed. */
int32_t npu_tiny_play(const uint8_t *stream, uint32_t bytes, uint32_t layers);

#endif
