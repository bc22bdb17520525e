/* microTVM's allocator. */
#include <tvm/runtime/crt/stack_allocator.h>

static size_t rounded(size_t size)
{
    const size_t unit = TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES;
    return (size + unit - 1u) / unit * unit;
}

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *allocator, uint8_t *memory, size_t size)
{
    const size_t before = (size_t)(0u - (uintptr_t)memory) % TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES;
    if (before > size) {
        return kTvmErrorPlatformNoMemory;
    }
    allocator->workspace = memory + before;
    allocator->next_alloc = allocator->workspace;
    allocator->workspace_size = size - before;
    return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t *allocator, int32_t size, void **place)
{
    const size_t left = allocator->workspace_size - (size_t)(allocator->next_alloc - allocator->workspace);
    if (size < 0 || rounded((size_t)size) > left) {
        *place = NULL;
        return kTvmErrorPlatformNoMemory;
    }
    *place = allocator->next_alloc;
    allocator->next_alloc += rounded((size_t)size);
    return kTvmErrorNoError;
}

tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *allocator, void *place)
{
    uint8_t *const block = place;
    if (block < allocator->workspace || block > allocator->next_alloc) {
        return kTvmErrorPlatformStackAllocBadFree;
    }
    allocator->next_alloc = block;
    return kTvmErrorNoError;
}
