/* How commands come: words of the bus wait in a small memory, ahead of the command that is put together of them. */
#include "npu_device.h"

/* Bytes of a command that are put together in a cycle, at most; such steps of a word of the bus. */
enum { STEP = NPU_BUS_BYTES < 4 ? NPU_BUS_BYTES : 4, STEPS = NPU_BUS_BYTES / STEP };

typedef char npu_machine_has_words[4 % STEP == 0 && NPU_BUS_BYTES % STEP == 0 ? 1 : -1];

void NPU_SYMBOL(fetch_begin)(struct npu_fetching *fetching, uint32_t address, uint32_t length)
{
    const struct npu_fetching begun = {0};
    *fetching = begun;
    fetching->first = address / NPU_BUS_BYTES;
    fetching->at = address % NPU_BUS_BYTES / STEP;
    fetching->behind = fetching->at + length / STEP;
    fetching->words = (fetching->behind + STEPS - 1u) / STEPS;
    fetching->asks = fetching->next = NPU_FETCH_START;
    fetching->whole = NPU_NEVER;
}

/* There has to be room for a whole burst. */
static uint64_t asks_again(const struct npu_fetching *fetching)
{
    const uint32_t needed = fetching->asked + NPU_FETCHED;
    if (fetching->asked == fetching->words || needed > fetching->used + NPU_FETCH_ROOM) {
        return NPU_NEVER;
    }
    const uint64_t room = needed > NPU_FETCH_ROOM ? fetching->used_at[(needed - 1u) % NPU_FETCH_ROOM] : 0;
    return (room > fetching->last ? room : fetching->last) + 1u;
}

/* A step a cycle, of the words that are there. */
static void put_together(struct npu_fetching *fetching)
{
    while (fetching->at < fetching->end && fetching->at / STEPS < fetching->asked) {
        const uint64_t came = fetching->came[fetching->at / STEPS % NPU_FETCH_ROOM];
        const uint64_t when = fetching->next > came ? fetching->next : came;
        fetching->next = when + 1u;
        fetching->at++;
        if (fetching->at % STEPS == 0 || fetching->at == fetching->behind) {
            fetching->used_at[fetching->used % NPU_FETCH_ROOM] = when;
            fetching->used++;
        }
    }
    if (fetching->at == fetching->end && fetching->whole == NPU_NEVER) {
        fetching->whole = fetching->next;
    }
    fetching->asks = asks_again(fetching);
}

void NPU_SYMBOL(fetch_asks)(struct npu_fetching *fetching, struct npu_reads *reads, uint64_t now)
{
    const uint32_t left = fetching->words - fetching->asked;
    const struct npu_burst burst = {fetching->first + (uint64_t)fetching->asked,
                                    left < NPU_FETCHED ? left : NPU_FETCHED};
    uint64_t times[NPU_FETCHED];
    NPU_SYMBOL(bus_ask)(reads, NPU_FLASH, &burst, now, 0, times);
    for (uint32_t i = 0; i < burst.words; ++i) {
        fetching->came[(fetching->asked + i) % NPU_FETCH_ROOM] = times[i] + NPU_FETCH_HELD;
    }
    fetching->asked += burst.words;
    fetching->last = now;
    put_together(fetching);
}

void NPU_SYMBOL(fetch_next)(struct npu_fetching *fetching, uint32_t words)
{
    fetching->end = fetching->at + words * 4u / STEP;
    fetching->whole = NPU_NEVER;
    if (fetching->asked != 0) {
        put_together(fetching);
    }
}
