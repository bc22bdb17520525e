/* What the driver's functions are called. A machine of another name is this file with another one. */
#ifndef NPU_NAMES_H
#define NPU_NAMES_H

#define NPU_HOOK(hook) TVMDeviceNpu##hook
#define NPU_CALL(call) npu_##call

#endif
