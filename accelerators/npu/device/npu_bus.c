/* The bus that fetching, loading and storing share: who has it next, and for how long. The rules of docs/npu.md. */
#include "npu_device.h"

#define NEVER UINT64_MAX

/* Cycles that a memory lets the bus wait: for a burst's first word, and for each further one. */
static const struct {
    uint32_t first, next;
} waits[NPU_MEMORIES] = {{NPU_RAM_FIRST, NPU_RAM_NEXT}, {NPU_FLASH_FIRST, NPU_FLASH_NEXT}};

void NPU_SYMBOL(bus_idle)(struct npu_bus *bus)
{
    bus->free = 0;
    bus->last = NPU_MASTERS - 1;
    for (uint32_t i = 0; i < NPU_MEMORIES; ++i) {
        bus->behind[i] = NEVER;
    }
    for (uint32_t i = 0; i < NPU_MASTERS; ++i) {
        bus->requests[i].since = NEVER;
        bus->requests[i].end = 0;
    }
}

void NPU_SYMBOL(bus_ask)(struct npu_bus *bus, enum npu_master master, enum npu_memory memory,
                         const struct npu_runs *runs, uint64_t since, uint64_t least)
{
    const struct npu_request asked = {*runs, memory, 0, {0, 0}, since, 0, least};
    bus->requests[master] = asked;
}

/* The burst behind this one: of the same run, of the next, or none. */
static bool go_on(struct npu_request *request, uint32_t words, uint32_t all)
{
    request->done += words;
    if (request->done < all) {
        return true;
    }
    request->done = 0;
    for (uint32_t level = 0; level < 2; ++level) {
        if (++request->at[level] < request->runs.counts[level]) {
            return true;
        }
        request->at[level] = 0;
    }
    return false;
}

static void burst(struct npu_bus *bus, struct npu_request *request, uint64_t now)
{
    const struct npu_runs *const runs = &request->runs;
    const uint32_t from = runs->address + request->at[0] * runs->strides[0] + request->at[1] * runs->strides[1];
    const uint32_t all = (from % NPU_BUS_BYTES + runs->run + NPU_BUS_BYTES - 1u) / NPU_BUS_BYTES;
    const uint32_t words = all - request->done < NPU_BURST ? all - request->done : NPU_BURST;
    const uint64_t word = from / NPU_BUS_BYTES + (uint64_t)request->done;
    const enum npu_memory memory = request->memory;
    const uint32_t wait = bus->behind[memory] == word ? waits[memory].next : waits[memory].first;
    bus->free = now + wait + 1u + (words - 1u) * (uint64_t)(waits[memory].next + 1u);
    bus->behind[memory] = word + words;
    request->since = now;
    if (!go_on(request, words, all)) {
        request->since = NEVER;
        request->end = bus->free > request->least ? bus->free : request->least;
    }
}

void NPU_SYMBOL(bus_grant)(struct npu_bus *bus, uint64_t now)
{
    if (bus->free > now) {
        return;
    }
    for (uint32_t i = 1; i <= NPU_MASTERS; ++i) {
        const uint32_t master = (bus->last + i) % NPU_MASTERS;
        if (bus->requests[master].since <= now) {
            bus->last = master;
            burst(bus, &bus->requests[master], now);
            return;
        }
    }
}

uint64_t NPU_SYMBOL(bus_next)(const struct npu_bus *bus)
{
    uint64_t since = NEVER;
    for (uint32_t i = 0; i < NPU_MASTERS; ++i) {
        since = bus->requests[i].since < since ? bus->requests[i].since : since;
    }
    return since == NEVER || since > bus->free ? since : bus->free;
}

bool NPU_SYMBOL(bus_done)(const struct npu_bus *bus, enum npu_master master, uint64_t now)
{
    return bus->requests[master].since == NEVER && bus->requests[master].end <= now;
}
