/* What the driver of the machine in front of a flash calls its functions. */
#ifndef NPU_NAMES_H
#define NPU_NAMES_H

#include "npu_flash.h"

#define NPU_HOOK(hook) TVMDeviceNpuFlash##hook
#define NPU_CALL(call) npu_flash_##call

#endif
