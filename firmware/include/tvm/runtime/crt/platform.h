/* What a platform of microTVM provides. Models of uaccel call none of it; applications do. */
#ifndef TVM_RUNTIME_CRT_PLATFORM_H_
#define TVM_RUNTIME_CRT_PLATFORM_H_

#include <stdarg.h>
#include <stddef.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/error_codes.h>

#ifdef __cplusplus
extern "C" {
#endif

void TVMPlatformAbort(tvm_crt_error_t error) __attribute__((noreturn));
size_t TVMPlatformFormatMessage(char *text, size_t size, const char *format, va_list arguments);
tvm_crt_error_t TVMPlatformMemoryAllocate(size_t size, DLDevice device, void **place);
tvm_crt_error_t TVMPlatformMemoryFree(void *place, DLDevice device);
tvm_crt_error_t TVMPlatformTimerStart(void);
tvm_crt_error_t TVMPlatformTimerStop(double *seconds);
tvm_crt_error_t TVMPlatformBeforeMeasurement(void);
tvm_crt_error_t TVMPlatformAfterMeasurement(void);
tvm_crt_error_t TVMPlatformGenerateRandom(uint8_t *bytes, size_t count);
tvm_crt_error_t TVMPlatformInitialize(void);

#ifdef __cplusplus
}
#endif

#endif
