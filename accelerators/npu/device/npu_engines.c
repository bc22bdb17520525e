/* Commands on their way: fetched in order, each into the queue of its engine, executed when engine and tokens are
 * there. Time goes from one event to the next.
 *
 * Commands take effect in the order in which they start; of two at the same time that of the earlier engine first. */
#include "npu_device.h"

/* A FIFO holds so many tokens. */
enum { TOKENS_KEPT = 4096 };
enum { LOAD_TO_COMPUTE, COMPUTE_TO_LOAD, COMPUTE_TO_STORE, STORE_TO_COMPUTE, FIFOS };

/* What waits for an engine, and what it has in hand from `begin` to `end`; `end` of a load is `loading`'s to say. */
struct queue {
    struct npu_command commands[NPU_QUEUE];
    uint32_t first, count;
    bool works;
    struct npu_command current;
    uint64_t begin, end;
};

/* One command is put together while the one before is `checked`, until `judged`, and waits for room in its queue;
 * `index` is its number, or the next one's. */
struct stream {
    uint32_t address, length, at, index;
    uint32_t words[NPU_LONGEST]; /* the next command, if there is one */
    uint32_t count;
    bool checks;
    uint64_t judged;
    struct npu_command checked;
    struct npu_fetching fetching;
};

static struct queue queues[NPU_ENGINES];
static uint32_t fifos[FIFOS];
static struct npu_reads reads;
static struct npu_loading loading;
static struct npu_results results; /* of what the compute engine has in hand */

/* Which FIFO a flag is about, by engine: wait for previous and next, push to previous and next; FIFOS: none. */
static const uint32_t neighbours[NPU_ENGINES][4] = {
    {FIFOS, COMPUTE_TO_LOAD, FIFOS, LOAD_TO_COMPUTE},
    {LOAD_TO_COMPUTE, STORE_TO_COMPUTE, COMPUTE_TO_LOAD, COMPUTE_TO_STORE},
    {COMPUTE_TO_STORE, FIFOS, STORE_TO_COMPUTE, FIFOS},
};
static const uint32_t flags[4] = {NPU_WAIT_PREVIOUS, NPU_WAIT_NEXT, NPU_PUSH_PREVIOUS, NPU_PUSH_NEXT};

static void forget(void)
{
    for (uint32_t i = 0; i < NPU_ENGINES; ++i) {
        queues[i].first = queues[i].count = 0;
        queues[i].works = false;
    }
    for (uint32_t i = 0; i < FIFOS; ++i) {
        fifos[i] = 0;
    }
    NPU_SYMBOL(bus_idle)(&reads);
    NPU_SYMBOL(load_idle)(&loading);
}

static enum npu_error read_words(const struct npu_outside *outside, uint32_t address, uint32_t *words, uint32_t count)
{
    uint8_t bytes[4 * NPU_LONGEST];
    if (outside->bus->read(outside->bus->context, address, bytes, 4u * count) != 0) {
        return NPU_BUS;
    }
    for (uint32_t i = 0; i < count; ++i) {
        const uint8_t *const b = bytes + 4u * i;
        words[i] = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
    }
    return NPU_OK;
}

/* Begin with the next command, where none is on its way and the stream goes on. */
static enum npu_error fetch(struct stream *stream, const struct npu_outside *outside)
{
    if (stream->count != 0 || stream->at == stream->length) {
        return NPU_OK;
    }
    enum npu_error error = read_words(outside, stream->address + stream->at, stream->words, 1);
    if (error != NPU_OK) {
        return error;
    }
    const uint32_t count = NPU_SYMBOL(words_of)(stream->words[0]);
    if (count == 0) {
        return NPU_COMMAND;
    }
    if (4u * count > stream->length - stream->at) {
        return NPU_STREAM;
    }
    if (count > 1) {
        error = read_words(outside, stream->address + stream->at + 4u, stream->words + 1, count - 1u);
    }
    if (error == NPU_OK) {
        stream->count = count;
        NPU_SYMBOL(fetch_next)(&stream->fetching, count);
        stream->at += 4u * count;
    }
    return error;
}

/* A command that the bus has brought is checked from now on. */
static void take(struct stream *stream, uint64_t now)
{
    for (uint32_t i = 0; i < NPU_LONGEST; ++i) {
        stream->checked.words[i] = i < stream->count ? stream->words[i] : 0;
    }
    stream->checked.index = stream->index;
    stream->checks = true;
    stream->judged = now + NPU_SYMBOL(checking)(stream->words);
    stream->count = 0;
    stream->fetching.next = now + 1u;
    stream->fetching.whole = NPU_NEVER;
}

/* Commands into queues, as long as the next one's has room. What is wrong with the one behind is its own error. */
static enum npu_error dispatch(struct stream *stream, const struct npu_outside *outside, uint64_t now)
{
    for (;;) {
        const enum npu_error fetched = fetch(stream, outside);
        if (stream->checks) {
            struct queue *const queue = &queues[NPU_SYMBOL(engine_of)(stream->checked.words[0])];
            if (now < stream->judged) {
                return NPU_OK;
            }
            const enum npu_error error = NPU_SYMBOL(check)(&stream->checked, outside);
            if (error != NPU_OK || queue->count == NPU_QUEUE) {
                return error;
            }
            queue->commands[(queue->first + queue->count) % NPU_QUEUE] = stream->checked;
            queue->count++;
            stream->index++;
            stream->checks = false;
        } else if (fetched != NPU_OK || stream->count == 0 || now < stream->fetching.whole) {
            return fetched;
        } else {
            take(stream, now);
        }
    }
}

/* Whether the engine can start with its next command; if so, the tokens are taken. */
static bool takes(enum npu_engine engine)
{
    const struct queue *const queue = &queues[engine];
    if (queue->works || queue->count == 0) {
        return false;
    }
    const uint32_t first = queue->commands[queue->first].words[0];
    for (uint32_t i = 0; i < 2; ++i) {
        if ((first & flags[i]) != 0 && fifos[neighbours[engine][i]] == 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < 2; ++i) {
        if ((first & flags[i]) != 0) {
            fifos[neighbours[engine][i]]--;
        }
    }
    return true;
}

/* False where more tokens lie about than anything could mean. */
static bool push_tokens(enum npu_engine engine, uint32_t first)
{
    for (uint32_t i = 2; i < 4; ++i) {
        if ((first & flags[i]) != 0 && ++fifos[neighbours[engine][i]] > TOKENS_KEPT) {
            return false;
        }
    }
    return true;
}

static enum npu_error execute(struct npu_memories *memories, const struct npu_outside *outside,
                              const struct npu_command *command)
{
    switch (command->words[0] & 0xFFu) {
    case NPU_LOAD:
    case NPU_STORE:
        return NPU_SYMBOL(transfer)(memories, outside, command);
    case NPU_CONVOLVE:
        return NPU_SYMBOL(convolve)(memories, command);
    case NPU_DEPTHWISE:
        return NPU_SYMBOL(depthwise)(memories, command);
    case NPU_POOL:
        return NPU_SYMBOL(pool)(memories, command);
    case NPU_ADD:
        return NPU_SYMBOL(add)(memories, command);
    case NPU_LOOKUP:
        NPU_SYMBOL(lookup)(memories, command);
        return NPU_OK;
    case NPU_PACK:
        NPU_SYMBOL(pack)(memories, command);
        return NPU_OK;
    default:
        return NPU_OK;
    }
}

/* Stores have the words that go to themselves. */
static uint64_t stored(const struct npu_command *command, const struct npu_outside *outside, uint64_t now)
{
    const struct npu_runs runs = NPU_SYMBOL(runs_of)(command, outside);
    uint64_t words = 0;
    for (uint32_t plane = 0; plane < runs.counts[1]; ++plane) {
        for (uint32_t run = 0; run < runs.counts[0]; ++run) {
            const uint32_t from = runs.address + run * runs.strides[0] + plane * runs.strides[1];
            words += (from % NPU_BUS_BYTES + (uint64_t)runs.run + NPU_BUS_BYTES - 1u) / NPU_BUS_BYTES;
        }
    }
    return now + NPU_DMA_START + NPU_RAM_FIRST + words * (NPU_RAM_NEXT + 1u) + NPU_STORE_END;
}

/* The engine's next command. A transfer asks for the bus after a while. */
static enum npu_error start(struct npu_job *job, struct npu_memories *memories, const struct npu_outside *outside,
                            enum npu_engine engine, uint64_t now)
{
    struct queue *const queue = &queues[engine];
    queue->current = queue->commands[queue->first];
    queue->first = (queue->first + 1u) % NPU_QUEUE;
    queue->count--;
    queue->works = true;
    queue->begin = now;
    job->failed = queue->current.index;
    if (engine == NPU_ENGINE_LOAD) {
        NPU_SYMBOL(load_begin)(&loading, &queue->current, outside, now + NPU_DMA_START);
    } else if (engine == NPU_ENGINE_COMPUTE) {
        queue->end = now + NPU_SYMBOL(duration)(&queue->current);
        results = NPU_SYMBOL(results_of)(&queue->current);
    } else {
        queue->end = stored(&queue->current, outside, now);
    }
    return execute(memories, outside, &queue->current);
}

static uint64_t end_of(enum npu_engine engine)
{
    const struct queue *const queue = &queues[engine];
    return !queue->works ? NPU_NEVER : engine == NPU_ENGINE_LOAD ? loading.end : queue->end;
}

static enum npu_error end(struct npu_job *job, const struct npu_outside *outside, enum npu_engine engine, uint64_t now)
{
    static const char *const names[NPU_ENGINES] = {"load", "compute", "store"};
    struct queue *const queue = &queues[engine];
    queue->works = false;
    job->failed = queue->current.index;
    job->busy[engine] += now - queue->begin;
    if (outside->bus->span != 0) {
        outside->bus->span(outside->bus->context, names[engine], queue->current.index, job->begin + queue->begin,
                           job->begin + now);
    }
    return push_tokens(engine, queue->current.words[0]) ? NPU_OK : NPU_TOKEN;
}

/* All that happens at this time: what ends, what is in hand, what starts. */
static enum npu_error settle(struct npu_job *job, struct npu_memories *memories, const struct npu_outside *outside,
                             struct stream *stream, uint64_t now)
{
    enum npu_error error = NPU_OK;
    for (uint32_t i = 0; i < NPU_ENGINES && error == NPU_OK; ++i) {
        error = end_of((enum npu_engine)i) <= now ? end(job, outside, (enum npu_engine)i, now) : NPU_OK;
    }
    for (uint32_t i = 0; i < NPU_ENGINES && error == NPU_OK; ++i) {
        error = dispatch(stream, outside, now);
        if (error != NPU_OK) {
            job->failed = stream->index;
        } else if (takes((enum npu_engine)i)) {
            error = start(job, memories, outside, (enum npu_engine)i, now);
            i = UINT32_MAX; /* there is room in a queue: from the first engine again */
        }
    }
    return error;
}

/* One burst in a cycle, for fetching first. */
static void ask(struct stream *stream, uint64_t now)
{
    struct queue *const computes = &queues[NPU_ENGINE_COMPUTE];
    if (stream->fetching.asks <= now) {
        NPU_SYMBOL(fetch_asks)(&stream->fetching, &reads, now);
        loading.asks = loading.asks <= now ? now + 1u : loading.asks;
    } else if (loading.asks <= now) {
        loading.results = computes->works ? &results : 0;
        loading.results_end = computes->end;
        NPU_SYMBOL(load_asks)(&loading, &reads, now);
    }
}

/* When something happens next; NPU_NEVER: nothing does. */
static uint64_t next_event(const struct stream *stream, uint64_t now)
{
    const uint64_t events[] = {stream->checks && stream->judged > now ? stream->judged : NPU_NEVER,
                               stream->count != 0 && stream->fetching.whole > now ? stream->fetching.whole : NPU_NEVER,
                               stream->fetching.asks,
                               loading.asks,
                               end_of(NPU_ENGINE_LOAD),
                               end_of(NPU_ENGINE_COMPUTE),
                               end_of(NPU_ENGINE_STORE)};
    uint64_t next = NPU_NEVER;
    for (uint32_t i = 0; i < sizeof events / sizeof events[0]; ++i) {
        next = events[i] < next ? events[i] : next;
    }
    return next;
}

/* Of all commands in queues the one that was fetched first. */
static uint32_t oldest(void)
{
    uint32_t index = UINT32_MAX;
    for (uint32_t i = 0; i < NPU_ENGINES; ++i) {
        const struct queue *const queue = &queues[i];
        if (queue->count != 0 && queue->commands[queue->first].index < index) {
            index = queue->commands[queue->first].index;
        }
    }
    return index;
}

enum npu_error NPU_SYMBOL(run)(struct npu_job *job, struct npu_memories *memories, const struct npu_outside *outside,
                               uint32_t address, uint32_t length)
{
    struct stream stream = {0};
    stream.address = address;
    stream.length = length;
    NPU_SYMBOL(fetch_begin)(&stream.fetching, address, length);
    forget();
    job->end = 0;
    for (;;) {
        const enum npu_error error = settle(job, memories, outside, &stream, job->end);
        if (error != NPU_OK) {
            return error;
        }
        ask(&stream, job->end);
        const uint64_t next = next_event(&stream, job->end);
        if (next == NPU_NEVER) {
            job->failed = oldest();
            return job->failed == UINT32_MAX ? NPU_OK : NPU_DEADLOCK;
        }
        job->end = next;
    }
}
