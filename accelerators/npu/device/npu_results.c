/* When a computation writes its results: a load for the same memory waits in these cycles. */
#include "npu_device.h"

enum { BEHIND = 2 }; /* cycles from a command's last result until it ends */

static struct npu_results one_a_cycle(uint64_t count)
{
    const struct npu_results found = {count, 1, 1, 1, false};
    return found;
}

static struct npu_results convolved(const struct npu_command *command, const struct npu_window *w)
{
    const uint64_t blocks = NPU_SYMBOL(blocks)(w->channels), steps = npu_high(command->words[15]);
    const uint64_t pieces = NPU_SYMBOL(pieces)(command), array = blocks * steps;
    const struct npu_results found = {(uint64_t)w->rows * w->columns, array > pieces ? array : pieces, blocks, steps,
                                      false};
    return found;
}

struct npu_results NPU_SYMBOL(results_of)(const struct npu_command *command)
{
    const uint32_t *const words = command->words;
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const struct npu_slides s = NPU_SYMBOL(slides)(command);
    const struct npu_results none = {0, 1, 1, 1, false};
    switch (words[0] & 0xFFu) {
    case NPU_CONVOLVE:
        return (words[0] & NPU_KEEP) != 0 ? none : convolved(command, &w);
    case NPU_DEPTHWISE: {
        const struct npu_results found = {(uint64_t)w.rows * NPU_SYMBOL(blocks)(w.channels), s.each, w.columns, s.next,
                                          false};
        return found;
    }
    case NPU_POOL: {
        const struct npu_results found = {(uint64_t)w.rows * w.columns * NPU_SYMBOL(blocks)(w.channels), s.each, 1, 1,
                                          false};
        return found;
    }
    case NPU_ADD:
        return one_a_cycle((uint64_t)words[8] * ((words[7] + (uint64_t)NPU_COLUMNS - 1u) / NPU_COLUMNS));
    case NPU_LOOKUP:
        return one_a_cycle((uint64_t)words[6] * ((words[5] + (uint64_t)NPU_PORTS - 1u) / NPU_PORTS));
    case NPU_PACK: {
        struct npu_results found = one_a_cycle(NPU_SYMBOL(pieces)(command));
        found.to_weights = true;
        return found;
    }
    default:
        return none;
    }
}

static bool writes(const struct npu_results *results, uint64_t since)
{
    const uint64_t in_group = since % results->period;
    return in_group % results->step == 0 && in_group < results->count * results->step;
}

uint64_t NPU_SYMBOL(results_free)(const struct npu_results *results, uint64_t now, uint64_t end)
{
    const uint64_t last = end - BEHIND;
    if (results->groups == 0 || now > last) {
        return now;
    }
    if (results->period == 1) {
        return last - now < results->groups ? last + 1u : now;
    }
    const uint64_t span = (results->groups - 1u) * results->period + (results->count - 1u) * results->step;
    while (now <= last && last - now <= span && writes(results, span - (last - now))) {
        ++now;
    }
    return now;
}
