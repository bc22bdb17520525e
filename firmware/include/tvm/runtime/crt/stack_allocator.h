/* microTVM's allocator: memory is given back in the reverse order. A model of uaccel allocates nothing; applications of
 * microTVM set the allocator up all the same, and may use it. */
#ifndef TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_
#define TVM_RUNTIME_CRT_STACK_ALLOCATOR_H_

#include <stddef.h>
#include <stdint.h>
#include <tvm/runtime/crt/error_codes.h>

#ifndef TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES
#define TVM_RUNTIME_ALLOC_ALIGNMENT_BYTES 16
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
    uint8_t *next_alloc; /* where the next block begins */
    uint8_t *workspace;
    size_t workspace_size;
} tvm_workspace_t;

tvm_crt_error_t StackMemoryManager_Init(tvm_workspace_t *allocator, uint8_t *memory, size_t size);
tvm_crt_error_t StackMemoryManager_Allocate(tvm_workspace_t *allocator, int32_t size, void **place);
tvm_crt_error_t StackMemoryManager_Free(tvm_workspace_t *allocator, void *place);

#ifdef __cplusplus
}
#endif

#endif
