/* The bus that fetching, loading and storing share: who has it next, and for how long. The rules of docs/npu.md. */
#include "npu_device.h"

#define NEVER UINT64_MAX

/* Cycles that a memory lets the bus wait: for a burst's first word, and for each further one. One that has a word in
 * each cycle takes addresses ahead: of a request's bursts the first one waits. */
static const struct {
    uint32_t first, next;
} waits[NPU_MEMORIES] = {{NPU_RAM_FIRST, NPU_RAM_NEXT}, {NPU_FLASH_FIRST, NPU_FLASH_NEXT}};

/* Stores have words of their own; of the others fetching goes first. */
static uint64_t *channel(struct npu_bus *bus, uint32_t master)
{
    return master == NPU_STORES ? &bus->writes : &bus->reads;
}

void NPU_SYMBOL(bus_idle)(struct npu_bus *bus)
{
    bus->reads = bus->writes = 0;
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
    const struct npu_request asked = {*runs, memory, 0, {0, 0}, false, since, 0, least, 0};
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

/* Cycles until its first word. */
static uint64_t wait_for(const struct npu_bus *bus, const struct npu_request *request, uint64_t word, uint64_t now)
{
    const uint64_t first = waits[request->memory].first, next = waits[request->memory].next;
    if (next == 0) {
        return !request->goes_on && request->since + first > now ? request->since + first - now : 0;
    }
    return bus->behind[request->memory] == word ? next : first;
}

static void burst(struct npu_bus *bus, uint32_t master, uint64_t now)
{
    struct npu_request *const request = &bus->requests[master];
    const struct npu_runs *const runs = &request->runs;
    const uint32_t from = runs->address + request->at[0] * runs->strides[0] + request->at[1] * runs->strides[1];
    const uint32_t all = (from % NPU_BUS_BYTES + runs->run + NPU_BUS_BYTES - 1u) / NPU_BUS_BYTES;
    const uint32_t words = all - request->done < NPU_BURST ? all - request->done : NPU_BURST;
    const uint64_t word = from / NPU_BUS_BYTES + (uint64_t)request->done;
    const uint64_t each = waits[request->memory].next + (uint64_t)1;
    const uint64_t end = now + wait_for(bus, request, word, now) + 1u + (words - 1u) * each;
    *channel(bus, master) = end;
    bus->behind[request->memory] = word + words;
    request->since = now;
    request->goes_on = true;
    if (!go_on(request, words, all)) {
        request->since = NEVER;
        request->end = (end > request->least ? end : request->least) + request->more;
    }
}

void NPU_SYMBOL(bus_grant)(struct npu_bus *bus, uint64_t now)
{
    for (uint32_t i = 0; i < NPU_MASTERS; ++i) {
        if (*channel(bus, i) <= now && bus->requests[i].since <= now) {
            burst(bus, i, now);
        }
    }
}

uint64_t NPU_SYMBOL(bus_next)(struct npu_bus *bus)
{
    uint64_t next = NEVER;
    for (uint32_t i = 0; i < NPU_MASTERS; ++i) {
        const uint64_t since = bus->requests[i].since, free = *channel(bus, i);
        if (since != NEVER) {
            const uint64_t when = since > free ? since : free;
            next = when < next ? when : next;
        }
    }
    return next;
}

bool NPU_SYMBOL(bus_done)(const struct npu_bus *bus, enum npu_master master, uint64_t now)
{
    return bus->requests[master].since == NEVER && bus->requests[master].end <= now;
}
