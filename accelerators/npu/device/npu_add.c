/* What takes elements one by one: addition of two quantised tensors, and a table. */
#include "npu_device.h"

enum npu_error NPU_SYMBOL(add)(struct npu_memories *memories, const struct npu_command *command)
{
    const uint32_t *const w = command->words;
    struct npu_addition addition;
    const enum npu_error error = NPU_SYMBOL(addition_at)(memories, w[9], (w[0] & NPU_ONCE) != 0, &addition);
    if (error != NPU_OK) {
        return error;
    }
    for (uint32_t row = 0; row < w[8]; ++row) {
        for (uint32_t i = 0; i < w[7]; ++i) {
            const int8_t first = (int8_t)memories->activations[w[1] + row * w[2] + i];
            const int8_t second = (int8_t)memories->activations[w[3] + row * w[4] + i];
            memories->activations[w[5] + row * w[6] + i] = (uint8_t)NPU_SYMBOL(added)(&addition, first, second);
        }
    }
    return NPU_OK;
}

void NPU_SYMBOL(lookup)(struct npu_memories *memories, const struct npu_command *command)
{
    const uint32_t *const w = command->words;
    for (uint32_t row = 0; row < w[6]; ++row) {
        for (uint32_t i = 0; i < w[5]; ++i) {
            const uint8_t index = memories->activations[w[1] + row * w[2] + i];
            memories->activations[w[3] + row * w[4] + i] = memories->weights[w[7] + index];
        }
    }
}
