/* Commands on their way: fetched in order, each into the queue of its engine, executed when engine and tokens are
 * there.
 *
 * Commands take effect in the order in which they start; of two at the same time that of the earlier engine first. */
#include "npu_device.h"

#define NEVER UINT64_MAX

/* A FIFO holds the times at which its tokens were pushed. */
enum { TOKENS_KEPT = 4096 };

struct fifo {
    uint64_t times[TOKENS_KEPT];
    uint32_t first, count;
};

struct queue {
    struct npu_command commands[NPU_QUEUE];
    uint32_t first, count;
    uint64_t starts[NPU_QUEUE]; /* of the last ones, in turn */
    uint32_t given;
    uint64_t free; /* when the engine is done with what it has begun */
};

enum { LOAD_TO_COMPUTE, COMPUTE_TO_LOAD, COMPUTE_TO_STORE, STORE_TO_COMPUTE, FIFOS };

struct stream {
    uint32_t address, length, at, index;
    uint64_t fetched;
    uint32_t words[NPU_LONGEST]; /* the next command, if there is one */
    uint32_t count;
};

static struct queue queues[NPU_ENGINES];
static struct fifo fifos[FIFOS];

/* Which FIFO a flag is about, by engine: wait for previous and next, push to previous and next; FIFOS: none. */
static const uint32_t neighbours[NPU_ENGINES][4] = {
    {FIFOS, COMPUTE_TO_LOAD, FIFOS, LOAD_TO_COMPUTE},
    {LOAD_TO_COMPUTE, STORE_TO_COMPUTE, COMPUTE_TO_LOAD, COMPUTE_TO_STORE},
    {COMPUTE_TO_STORE, FIFOS, STORE_TO_COMPUTE, FIFOS},
};
static const uint32_t flags[4] = {NPU_WAIT_PREVIOUS, NPU_WAIT_NEXT, NPU_PUSH_PREVIOUS, NPU_PUSH_NEXT};

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void forget(void)
{
    for (uint32_t i = 0; i < NPU_ENGINES; ++i) {
        queues[i].first = queues[i].count = queues[i].given = 0;
        queues[i].free = 0;
        for (uint32_t j = 0; j < NPU_QUEUE; ++j) {
            queues[i].starts[j] = 0;
        }
    }
    for (uint32_t i = 0; i < FIFOS; ++i) {
        fifos[i].first = fifos[i].count = 0;
    }
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

/* The next command, where none is in hand and the stream goes on. */
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
        stream->at += 4u * count;
    }
    return error;
}

/* Commands into queues, as long as the next one's has room. */
static enum npu_error dispatch(struct stream *stream, const struct npu_outside *outside)
{
    for (;;) {
        enum npu_error error = fetch(stream, outside);
        if (error != NPU_OK || stream->count == 0) {
            return error;
        }
        struct queue *const queue = &queues[NPU_SYMBOL(engine_of)(stream->words[0])];
        if (queue->count == NPU_QUEUE) {
            return NPU_OK;
        }
        struct npu_command *const command = &queue->commands[(queue->first + queue->count) % NPU_QUEUE];
        for (uint32_t i = 0; i < NPU_LONGEST; ++i) {
            command->words[i] = i < stream->count ? stream->words[i] : 0;
        }
        command->index = stream->index;
        error = NPU_SYMBOL(check)(command, outside);
        if (error != NPU_OK) {
            return error;
        }
        const uint64_t room = queue->starts[queue->given % NPU_QUEUE];
        const uint64_t cycles = (4u * (uint64_t)stream->count + NPU_FETCH_BYTES - 1u) / NPU_FETCH_BYTES;
        stream->fetched = later(stream->fetched + cycles, room);
        command->arrival = stream->fetched;
        queue->given++;
        queue->count++;
        stream->count = 0;
        stream->index++;
    }
}

/* When the engine's next command can start; NEVER where a token is missing. */
static uint64_t start_of(enum npu_engine engine)
{
    const struct queue *const queue = &queues[engine];
    if (queue->count == 0) {
        return NEVER;
    }
    const struct npu_command *const command = &queue->commands[queue->first];
    uint64_t start = later(command->arrival, queue->free);
    for (uint32_t i = 0; i < 2; ++i) {
        if ((command->words[0] & flags[i]) != 0) {
            const struct fifo *const fifo = &fifos[neighbours[engine][i]];
            start = fifo->count == 0 ? NEVER : later(start, fifo->times[fifo->first]);
            if (start == NEVER) {
                return NEVER;
            }
        }
    }
    return start;
}

static void take_tokens(enum npu_engine engine, uint32_t first)
{
    for (uint32_t i = 0; i < 2; ++i) {
        if ((first & flags[i]) != 0) {
            struct fifo *const fifo = &fifos[neighbours[engine][i]];
            fifo->first = (fifo->first + 1u) % TOKENS_KEPT;
            fifo->count--;
        }
    }
}

/* False where more tokens lie about than anything could mean. */
static bool push_tokens(enum npu_engine engine, uint32_t first, uint64_t time)
{
    for (uint32_t i = 2; i < 4; ++i) {
        if ((first & flags[i]) != 0) {
            struct fifo *const fifo = &fifos[neighbours[engine][i]];
            if (fifo->count == TOKENS_KEPT) {
                return false;
            }
            fifo->times[(fifo->first + fifo->count) % TOKENS_KEPT] = time;
            fifo->count++;
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

/* The engine's next command, from its start to its end. */
static enum npu_error step(struct npu_job *job, struct npu_memories *memories, const struct npu_outside *outside,
                           enum npu_engine engine, uint64_t start)
{
    static const char *const names[NPU_ENGINES] = {"load", "compute", "store"};
    struct queue *const queue = &queues[engine];
    const struct npu_command *const command = &queue->commands[queue->first];
    const uint64_t cycles = NPU_SYMBOL(duration)(command);
    queue->starts[(queue->given - queue->count) % NPU_QUEUE] = start;
    queue->first = (queue->first + 1u) % NPU_QUEUE;
    queue->count--;
    queue->free = start + cycles;
    job->failed = command->index;
    job->busy[engine] += cycles;
    job->end = later(job->end, queue->free);
    take_tokens(engine, command->words[0]);
    if (!push_tokens(engine, command->words[0], queue->free)) {
        return NPU_TOKEN;
    }
    if (outside->bus->span != 0) {
        outside->bus->span(outside->bus->context, names[engine], command->index, job->begin + start,
                           job->begin + queue->free);
    }
    return execute(memories, outside, command);
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
    struct stream stream = {address, length, 0, 0, NPU_DMA_START, {0}, 0};
    forget();
    for (;;) {
        enum npu_error error = dispatch(&stream, outside);
        if (error != NPU_OK) {
            job->failed = stream.index;
            return error;
        }
        uint64_t start = NEVER;
        enum npu_engine engine = NPU_ENGINE_LOAD;
        for (uint32_t i = 0; i < NPU_ENGINES; ++i) {
            const uint64_t candidate = start_of((enum npu_engine)i);
            engine = candidate < start ? (enum npu_engine)i : engine;
            start = candidate < start ? candidate : start;
        }
        if (start == NEVER) {
            job->failed = oldest();
            return job->failed == UINT32_MAX ? NPU_OK : NPU_DEADLOCK;
        }
        error = step(job, memories, outside, engine, start);
        if (error != NPU_OK) {
            return error;
        }
    }
}
