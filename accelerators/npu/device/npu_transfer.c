/* DMA between memory and the scratchpads. */
#include "npu_device.h"

struct npu_runs NPU_SYMBOL(runs_of)(const struct npu_command *command, const struct npu_outside *outside)
{
    const struct npu_transfer t = NPU_SYMBOL(transfer_of)(command);
    const struct npu_runs runs = {outside->places[t.place].base + t.offset, t.run, {t.runs, t.planes},
                                  {t.strides[0], t.strides[1]}};
    return runs;
}

enum npu_error NPU_SYMBOL(transfer)(struct npu_memories *memories, const struct npu_outside *outside,
                                    const struct npu_command *command)
{
    const struct npu_transfer t = NPU_SYMBOL(transfer_of)(command);
    const struct uaccel_bus *const bus = outside->bus;
    const bool loads = (command->words[0] & 0xFFu) == NPU_LOAD;
    uint8_t *const memory = t.memory == 0 ? memories->activations : memories->weights;
    if (loads && (command->words[0] & NPU_CODED) != 0) {
        return NPU_SYMBOL(unpack)(outside, &t, memory + t.address);
    }
    for (uint32_t plane = 0; plane < t.planes; ++plane) {
        for (uint32_t run = 0; run < t.runs; ++run) {
            const uint32_t there =
                outside->places[t.place].base + t.offset + plane * t.strides[1] + run * t.strides[0];
            uint8_t *const here = memory + t.address + plane * t.pitches[1] + run * t.pitches[0];
            const int32_t status = loads ? bus->read(bus->context, there, here, t.run)
                                         : bus->write(bus->context, there, here, t.run);
            if (status != 0) {
                return NPU_BUS;
            }
        }
    }
    return NPU_OK;
}
