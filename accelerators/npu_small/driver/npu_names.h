/* What the small machine's driver calls its functions. */
#ifndef NPU_NAMES_H
#define NPU_NAMES_H

#include "npu_small.h"

#define NPU_HOOK(hook) TVMDeviceNpuSmall##hook
#define NPU_CALL(call) npu_small_##call

#endif
