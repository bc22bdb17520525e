/* What the tiny machine's driver calls its functions. */
#ifndef NPU_NAMES_H
#define NPU_NAMES_H

#include "npu_tiny.h"

#define NPU_HOOK(hook) TVMDeviceNpuTiny##hook
#define NPU_CALL(call) npu_tiny_##call

#endif
