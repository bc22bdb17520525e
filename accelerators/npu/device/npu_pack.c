/* A matrix that was computed becomes weights: from the activations to tiles, as CONVOLVE reads them. */
#include "npu_device.h"

void NPU_SYMBOL(pack)(struct npu_memories *memories, const struct npu_command *command)
{
    const struct npu_pack p = NPU_SYMBOL(pack_of)(command);
    const uint32_t steps = (p.depth + NPU_ROWS - 1u) / NPU_ROWS;
    for (uint32_t channel = 0; channel < p.channels; ++channel) {
        for (uint32_t k = 0; k < p.depth; ++k) {
            const uint32_t tile = channel / NPU_COLUMNS * steps + k / NPU_ROWS;
            const uint32_t from = p.turned ? k * p.row + channel : channel * p.row + k;
            memories->weights[p.weights + tile * NPU_TILE + channel % NPU_COLUMNS * NPU_ROWS + k % NPU_ROWS] =
                memories->activations[p.source + from];
        }
    }
}
