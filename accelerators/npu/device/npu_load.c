/* What the load engine asks for, and when it takes the words that come. */
#include "npu_device.h"

void NPU_SYMBOL(load_idle)(struct npu_loading *loading)
{
    loading->asks = loading->end = NPU_NEVER;
    loading->there = 0;
    loading->written = loading->before = 0;
}

void NPU_SYMBOL(load_begin)(struct npu_loading *loading, const struct npu_command *command,
                            const struct npu_outside *outside, uint64_t now)
{
    const struct npu_transfer t = NPU_SYMBOL(transfer_of)(command);
    loading->runs = NPU_SYMBOL(runs_of)(command, outside);
    loading->memory = t.place == 0 ? NPU_FLASH : NPU_RAM;
    loading->to_weights = t.memory != 0;
    loading->coded = (command->words[0] & NPU_CODED) != 0;
    loading->done = loading->asked = loading->at[0] = loading->at[1] = 0;
    loading->asks = now;
    loading->end = NPU_NEVER;
    if (loading->coded) {
        NPU_SYMBOL(unpack_begin)(&loading->unpacking, outside, &t);
    }
}

/* Results of the compute engine go before what comes for the same memory. */
static uint64_t can_write(const struct npu_loading *loading, uint64_t now)
{
    const struct npu_results *const results = loading->results;
    const bool waits = results != 0 && results->to_weights == loading->to_weights;
    return waits ? NPU_SYMBOL(results_free)(results, now, loading->results_end) : now;
}

/* A vector is written in the cycle behind its last word, or as soon as that can be. One may wait while the words of the
 * next one come. */
uint64_t NPU_SYMBOL(load_takes)(struct npu_loading *loading, uint64_t offered)
{
    if (loading->coded) {
        return NPU_SYMBOL(unpack_takes)(&loading->unpacking, offered);
    }
    const uint64_t taken = loading->there == 0 && loading->before > offered ? loading->before : offered;
    loading->there++;
    loading->left--;
    if (loading->there == NPU_GATHERED || loading->left == 0) {
        const uint64_t whole = (taken > loading->written ? taken : loading->written) + 1u;
        loading->there = 0;
        loading->before = loading->written;
        loading->written = can_write(loading, whole);
    }
    return taken;
}

/* The burst behind this one: of the same run, of the next, or none. */
static bool go_on(struct npu_loading *loading, uint32_t words, uint32_t all)
{
    loading->done += words;
    if (loading->done < all) {
        return true;
    }
    loading->done = 0;
    for (uint32_t level = 0; level < 2; ++level) {
        if (++loading->at[level] < loading->runs.counts[level]) {
            return true;
        }
        loading->at[level] = 0;
    }
    return false;
}

void NPU_SYMBOL(load_asks)(struct npu_loading *loading, struct npu_reads *reads, uint64_t now)
{
    const struct npu_runs *const runs = &loading->runs;
    const uint32_t from = runs->address + loading->at[0] * runs->strides[0] + loading->at[1] * runs->strides[1];
    const uint32_t all = (from % NPU_BUS_BYTES + runs->run + NPU_BUS_BYTES - 1u) / NPU_BUS_BYTES;
    const uint32_t words = all - loading->done < NPU_BURST ? all - loading->done : NPU_BURST;
    const struct npu_burst burst = {from / NPU_BUS_BYTES + (uint64_t)loading->done, words};
    uint64_t times[NPU_BURST];
    loading->left = all - loading->done;
    NPU_SYMBOL(bus_ask)(reads, loading->memory, &burst, now, loading, times);
    for (uint32_t i = 0; i < words; ++i) {
        loading->came[(loading->asked + i) % NPU_CAME] = times[i];
    }
    loading->asked += words;
    loading->asks = now + 1u;
    if (loading->asked >= NPU_UNDER_WAY) {
        const uint64_t enough = loading->came[(loading->asked - NPU_UNDER_WAY) % NPU_CAME];
        loading->asks = (enough > now ? enough : now) + 1u;
    }
    if (!go_on(loading, words, all)) {
        loading->asks = NPU_NEVER;
        loading->end = loading->coded ? NPU_SYMBOL(unpack_ends)(&loading->unpacking) : loading->written + 1u;
    }
}
