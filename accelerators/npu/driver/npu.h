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

/* Between Open and Close: the memory that a stream knows by this number. `written`: the device writes there. */
int32_t NPU_CALL(place)(uint32_t number, const void *memory, uint32_t bytes, uint32_t written);

/* Play a stream, to its end. Places are forgotten then. */
int32_t NPU_CALL(play)(const uint8_t *stream, uint32_t bytes);

#endif
