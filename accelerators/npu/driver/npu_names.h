/* What the driver's functions are called. A machine of another name is this file, and a public header like npu.h. */
#ifndef NPU_NAMES_H
#define NPU_NAMES_H

#include "npu.h"

#define NPU_HOOK(hook) TVMDeviceNpu##hook
#define NPU_CALL(call) npu_##call

#endif
