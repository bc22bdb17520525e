/* The driver of machines of npu's family, as generated code calls it. Functions return 0 or a code of
 * uaccel_accelerator.h. */
#ifndef NPU_H
#define NPU_H

#include <stdint.h>

#include "npu_names.h"

int32_t NPU_HOOK(Activate)(void *device);
int32_t NPU_HOOK(Open)(void *device);
int32_t NPU_HOOK(Close)(void *device);
int32_t NPU_HOOK(Deactivate)(void *device);

/* Between Open and Close: the memory that the next stream knows by this number, below 64. `is_written`: the device writes
 * there; 16 of them at most. */
int32_t NPU_CALL(place)(uint32_t number, const void *memory, uint32_t bytes, uint32_t is_written);

/* Play a stream, to its end. */
int32_t NPU_CALL(play)(const uint8_t *stream, uint32_t bytes);

#endif
