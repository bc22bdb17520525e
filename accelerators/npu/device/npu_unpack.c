/* How long unpacking keeps the words of the bus waiting: a cycle for up to NPU_UNPACK bytes of a block. */
#include "npu_device.h"

enum { BLOCK = 32, ONES = 16, BEHIND = 2, KNOWN = 256 };

/* How often the ones of a byte go alone. */
static uint32_t alone(struct npu_unpacking *unpacking, uint32_t number)
{
    struct npu_code *const code = &unpacking->code;
    while (code->number <= number) {
        (void)NPU_SYMBOL(code_byte)(code);
        unpacking->alone[(code->number - 1u) % KNOWN] = code->ones / ONES;
    }
    return unpacking->alone[number % KNOWN];
}

/* Bytes that are whole with so many words: the last one that was read may not be. */
static uint32_t whole(struct npu_unpacking *unpacking, uint32_t words)
{
    const struct npu_code *const code = &unpacking->code;
    if (words == unpacking->all) {
        return code->size;
    }
    const uint64_t bits = 8u * ((uint64_t)NPU_BUS_BYTES * words - unpacking->skipped);
    while (code->bit <= bits && code->number < code->size) {
        (void)alone(unpacking, code->number);
    }
    return code->bit <= bits ? code->number : code->number - 1u;
}

/* None go together with those of the next block, or with one whose ones go alone. */
static void give(struct npu_unpacking *unpacking, uint32_t count, uint64_t until)
{
    const uint32_t there = unpacking->whole[1];
    while (unpacking->given < count && unpacking->given < there && unpacking->now < until) {
        unpacking->now++;
        if (unpacking->gone < alone(unpacking, unpacking->given)) {
            unpacking->gone++;
            continue;
        }
        unpacking->gone = 0;
        uint32_t together = 1;
        while (together < NPU_UNPACKED && unpacking->given + together < there &&
               (unpacking->given + together) % BLOCK != 0 && alone(unpacking, unpacking->given + together) == 0) {
            ++together;
        }
        unpacking->given += together;
    }
}

void NPU_SYMBOL(unpack_begin)(struct npu_unpacking *unpacking, const struct npu_outside *outside,
                              const struct npu_transfer *transfer)
{
    const struct npu_unpacking begun = {0};
    *unpacking = begun;
    NPU_SYMBOL(code_begin)(&unpacking->code, outside, transfer);
    unpacking->skipped = unpacking->code.address % NPU_BUS_BYTES;
    unpacking->all = (unpacking->skipped + transfer->run + NPU_BUS_BYTES - 1u) / NPU_BUS_BYTES;
    (void)alone(unpacking, 0);
}

/* Two words are held, and what began in the first one goes whole. */
uint64_t NPU_SYMBOL(unpack_takes)(struct npu_unpacking *unpacking, uint64_t offered)
{
    if (unpacking->words > 1) {
        give(unpacking, unpacking->whole[0] + 1u, NPU_NEVER);
    }
    const uint64_t taken = offered > unpacking->now ? offered : unpacking->now;
    give(unpacking, unpacking->whole[1], taken + 1u);
    unpacking->now = taken + 1u > unpacking->now ? taken + 1u : unpacking->now;
    unpacking->words++;
    unpacking->whole[0] = unpacking->whole[1];
    unpacking->whole[1] = whole(unpacking, unpacking->words);
    return taken;
}

uint64_t NPU_SYMBOL(unpack_ends)(struct npu_unpacking *unpacking)
{
    give(unpacking, unpacking->code.size, NPU_NEVER);
    return unpacking->now + BEHIND - 1u;
}
