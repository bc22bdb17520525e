/* Errors, by the numbers that microTVM gave them. */
#ifndef TVM_RUNTIME_CRT_ERROR_CODES_H_
#define TVM_RUNTIME_CRT_ERROR_CODES_H_

typedef enum {
    kTvmErrorNoError = 0,
    kTvmErrorPlatformCheckFailure = 0x500,
    kTvmErrorPlatformMemoryManagerInitialized = 0x501,
    kTvmErrorPlatformShutdown = 0x502,
    kTvmErrorPlatformNoMemory = 0x503,
    kTvmErrorPlatformTimerBadState = 0x504,
    kTvmErrorPlatformStackAllocBadFree = 0x505,
    kTvmErrorFunctionCallNotImplemented = 0x802
} tvm_crt_error_t;

#endif
