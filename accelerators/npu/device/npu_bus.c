/* The words that come over the bus: bursts that fetching and loads ask for, one in a cycle, and that come in this order.
 * The rules of docs/reference/npu.md. */
#include "npu_device.h"

/* Cycles that a memory lets the bus wait: for a burst's first word, and for each further one. One that has a word in
 * each cycle takes addresses ahead: of a request's bursts the first one waits. */
static const struct {
    uint32_t first, next;
} waits[NPU_MEMORIES] = {{NPU_RAM_FIRST, NPU_RAM_NEXT}, {NPU_FLASH_FIRST, NPU_FLASH_NEXT}};

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void NPU_SYMBOL(bus_idle)(struct npu_reads *reads)
{
    const struct npu_reads idle = {0};
    *reads = idle;
    for (uint32_t i = 0; i < NPU_MEMORIES; ++i) {
        reads->memories[i].behind = NPU_NEVER;
    }
}

/* When the first word of a burst can come. */
static uint64_t begin(const struct npu_reads *reads, enum npu_memory memory, uint64_t word, uint64_t now)
{
    const uint64_t first = waits[memory].first, next = waits[memory].next;
    if (next == 0) {
        return larger(now + first, reads->free);
    }
    const uint64_t wait = reads->memories[memory].behind == word ? next : first;
    const uint64_t since = larger(now, reads->free != 0 ? reads->free - 1u : 0u) + wait;
    return reads->memories[memory].gives ? larger(since, reads->memories[memory].gave + wait + 1u) : since;
}

void NPU_SYMBOL(bus_ask)(struct npu_reads *reads, enum npu_memory memory, const struct npu_burst *burst, uint64_t now,
                         struct npu_loading *loading, uint64_t *times)
{
    uint64_t given = begin(reads, memory, burst->word, now);
    for (uint32_t i = 0; i < burst->words; ++i) {
        times[i] = loading != 0 ? NPU_SYMBOL(load_takes)(loading, given) : given;
        reads->memories[memory].gave = given;
        given = larger(given + waits[memory].next + 1u, times[i] + 1u);
        reads->free = times[i] + 1u;
    }
    reads->memories[memory].behind = burst->word + burst->words;
    reads->memories[memory].gives = true;
}
