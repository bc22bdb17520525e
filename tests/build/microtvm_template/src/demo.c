/* An application in the manner of microTVM's standalone demonstration: it sets the allocator up and calls the model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tvm/runtime/c_runtime_api.h>
#include <tvm/runtime/crt/logging.h>
#include <tvm/runtime/crt/stack_allocator.h>

#include "crt_config.h"
#include "tvmgen_gesture.h"

static uint8_t memory[1024];
static tvm_workspace_t workspace;
static int8_t motion[TVMGEN_GESTURE_MOTION_SIZE], classes[TVMGEN_GESTURE_SOFTMAX_1_SIZE];

void TVMLogf(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
}

void TVMPlatformAbort(tvm_crt_error_t error)
{
    TVMLogf("abort %x\n", (unsigned)error);
    exit(1);
}

tvm_crt_error_t TVMPlatformMemoryAllocate(size_t size, DLDevice device, void **place)
{
    return device.device_type == kDLCPU ? StackMemoryManager_Allocate(&workspace, (int32_t)size, place)
                                        : kTvmErrorPlatformCheckFailure;
}

static void *allocated(int32_t size)
{
    const DLDevice cpu = {kDLCPU, 0};
    void *place;
    return TVMPlatformMemoryAllocate((size_t)size, cpu, &place) == kTvmErrorNoError ? place : NULL;
}

int main(void)
{
    StackMemoryManager_Init(&workspace, memory + 1, sizeof memory - 1);
    uint8_t *const first = allocated(600), *const second = allocated(100);
    const int good = first != NULL && second >= first + 600 && (uintptr_t)second % 16u == 0 && allocated(400) == NULL &&
                     StackMemoryManager_Free(&workspace, memory) == kTvmErrorPlatformStackAllocBadFree &&
                     StackMemoryManager_Free(&workspace, second) == kTvmErrorNoError && allocated(100) == second;
    if (!good) {
        TVMPlatformAbort(kTvmErrorPlatformNoMemory);
    }
    struct tvmgen_gesture_inputs inputs = {.motion = motion};
    struct tvmgen_gesture_outputs outputs = {.softmax_1 = classes};
    for (int i = 0; i < TVMGEN_GESTURE_MOTION_SIZE; ++i) {
        motion[i] = (int8_t)((7 * i + 3) % 256 - 128);
    }
    const int status = tvmgen_gesture_run(&inputs, &outputs);
    for (int i = 0; i < TVMGEN_GESTURE_SOFTMAX_1_SIZE; ++i) {
        TVMLogf("%d ", classes[i]);
    }
    return status;
}
