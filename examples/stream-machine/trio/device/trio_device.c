/* Stands in for the hardware: three engines that take commands from queues, and wait for each other by tokens.
 *
 * Commands take effect one by one in the stream's order, which is the order in which they could run without any other
 * engine. When they run is computed beside it, from queues and tokens. */
#include <stdbool.h>

#include "uaccel_registers.h"

#define IDENTITY 0x5452494Fu
#define VERSION 1u

enum { PLACES = 8, WORDS = 8, LANES = 8, QUEUE = 4, MEMORY = 4096, MOST_TOKENS = 64 };
enum { DMA_START = 20, DMA_BYTES = 4, FETCH_START = 20, FETCH = 4, START_UP = 10 }; /* cycles; FETCH is of a command */

enum {
    REG_IDENTITY,
    REG_VERSION,
    REG_START,
    REG_STATUS,
    REG_CYCLES,
    REG_FAILED,
    REG_STREAM,
    REG_COMMANDS,
    REG_PLACES,
    REGS = REG_PLACES + PLACES
};

enum { DONE = 1, FAILED = 2 };
enum { LOAD = 1, MULTIPLY, STORE, SYNC };
enum { LOADS, COMPUTES, STORES, ENGINES };

/* Times at which tokens were pushed, from engine to engine. */
struct tokens {
    uint64_t times[MOST_TOKENS];
    uint32_t pushed, popped;
};

static uint32_t reg[REGS];
static uint8_t activations[MEMORY];
static uint8_t weights[MEMORY];
static uint64_t begun[ENGINES][QUEUE]; /* when the last commands of each engine began */
static uint32_t given[ENGINES];        /* how many commands it got */
static uint64_t idle[ENGINES];         /* from when on it is */
static struct tokens tokens[4];        /* load to compute, compute to load, compute to store, store to compute */

/* Which of them a command pops and pushes by bits 8 to 11 of its first word: those of the engine before its own and of
 * the one after. 4: none. */
static const uint32_t neighbours[ENGINES][4] = {{4, 1, 4, 0}, {0, 3, 1, 2}, {2, 4, 3, 4}};

static uint32_t work(uint32_t value);

static struct uaccel_registers chip = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION,
    .first = REG_STREAM,
    .last = REGS - 1,
    .start = REG_START,
    .status = REG_STATUS,
    .work = work,
};

static uint32_t divided_up(uint32_t value, uint32_t by)
{
    return (value + by - 1u) / by;
}

static bool is_inside(uint64_t first, uint64_t bytes)
{
    return first + bytes <= MEMORY;
}

/* Words: what and tokens, place and memory, offset, address, run, runs, strides in memory and on chip. */
static bool transfer(const uint32_t *w, uint32_t *cycles)
{
    const uint32_t place = w[1] & 0xFFu, run = w[4], runs = w[5];
    uint8_t *const memory = (w[1] >> 8 & 0xFFu) == 0 ? activations : weights;
    *cycles = DMA_START + runs * divided_up(run, DMA_BYTES);
    for (uint32_t i = 0; i < runs; ++i) {
        const uint32_t there = reg[REG_PLACES + place % PLACES] + w[2] + i * w[6];
        const uint64_t here = (uint64_t)w[3] + (uint64_t)i * w[7];
        if (place >= PLACES || !is_inside(here, run)) {
            return false;
        }
        const int32_t status = (w[0] & 0xFFu) == LOAD ? chip.bus->read(chip.bus->context, there, memory + here, run)
                                                      : chip.bus->write(chip.bus->context, there, memory + here, run);
        if (status != 0) {
            return false;
        }
    }
    return true;
}

static int32_t word_at(const uint8_t *at)
{
    return (int32_t)((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
}

/* TFLite's way from a sum to a scaled one: doubled high product, then divided by a power, both rounded. */
static int32_t scaled(int32_t sum, int32_t multiplier, int32_t shift)
{
    const int32_t left = (int32_t)((uint32_t)sum << (shift > 0 ? shift : 0));
    const int64_t product = ((int64_t)left * multiplier + (INT64_C(1) << 30)) >> 31;
    const int32_t right = shift < 0 ? -shift : 0;
    const int64_t half = right == 0 ? 0 : INT64_C(1) << (right - 1);
    return (int32_t)(product < 0 ? -((-product + half) >> right) : (product + half) >> right);
}

/* `channel` of the block that begins at `block`, of the pixel at `input`. */
static int32_t output_of(const uint8_t *block, const uint8_t *input, uint32_t depth, uint32_t channel)
{
    const uint8_t *const parameters = block + LANES * depth + 4u * channel;
    uint32_t sum = (uint32_t)word_at(parameters); /* adders wrap */
    for (uint32_t i = 0; i < depth; ++i) {
        sum += (uint32_t)((int8_t)input[i] * (int8_t)block[channel * depth + i]);
    }
    return scaled((int32_t)sum, word_at(parameters + 4 * LANES), word_at(parameters + 8 * LANES));
}

/* Words: what and tokens, input, output, weights, depth and channels, pixels and pitch, zero point and limits. */
static bool multiply(const uint32_t *w, uint32_t *cycles)
{
    const uint32_t depth = w[4] & 0xFFFFu, channels = w[4] >> 16, pixels = w[5] & 0xFFFFu, pitch = w[5] >> 16;
    const int32_t zero_point = (int8_t)w[6], least = (int8_t)(w[6] >> 8), most = (int8_t)(w[6] >> 16);
    const uint32_t blocks = divided_up(channels, LANES), block_bytes = LANES * (depth + 12u);
    *cycles = START_UP + pixels * blocks * divided_up(depth, LANES);
    if (!is_inside(w[1], (uint64_t)pixels * depth) || !is_inside(w[3], (uint64_t)blocks * block_bytes) ||
        channels > pitch || !is_inside(w[2], (uint64_t)(pixels - 1u) * pitch + channels) || pixels == 0) {
        return false;
    }
    for (uint32_t pixel = 0; pixel < pixels; ++pixel) {
        for (uint32_t channel = 0; channel < channels; ++channel) {
            const uint8_t *const block = weights + w[3] + channel / LANES * block_bytes;
            int64_t value = output_of(block, activations + w[1] + pixel * depth, depth, channel % LANES);
            value += zero_point;
            value = value < least ? least : value > most ? most : value;
            activations[w[2] + pixel * pitch + channel] = (uint8_t)value;
        }
    }
    return true;
}

/* When the command runs: not before it is fetched, its engine is idle and its tokens are there. */
static bool take_time(uint32_t number, const uint32_t *w, uint32_t engine, uint32_t cycles, uint64_t *fetched)
{
    static const char *const names[ENGINES] = {"load", "compute", "store"};
    uint64_t *const room = &begun[engine][given[engine]++ % QUEUE]; /* a full queue lets nothing pass */
    *fetched = *fetched + FETCH > *room ? *fetched + FETCH : *room;
    uint64_t begin = *fetched > idle[engine] ? *fetched : idle[engine];
    for (uint32_t i = 0; i < 4; ++i) {
        struct tokens *const some = (w[0] >> (8u + i) & 1u) != 0 ? &tokens[neighbours[engine][i] % 4u] : NULL;
        if (some == NULL) {
            continue;
        }
        if (neighbours[engine][i] == 4 || some->pushed - some->popped == (i < 2 ? 0u : MOST_TOKENS)) {
            return false; /* no such engine, nobody will ever push it, or there is no room for it */
        }
        if (i < 2) {
            const uint64_t time = some->times[some->popped++ % MOST_TOKENS];
            begin = time > begin ? time : begin;
        } else {
            some->times[some->pushed++ % MOST_TOKENS] = begin + cycles;
        }
    }
    *room = begin;
    idle[engine] = begin + cycles;
    if (chip.bus->span != NULL) {
        chip.bus->span(chip.bus->context, names[engine], number, chip.busy + begin, chip.busy + idle[engine]);
    }
    return true;
}

static bool play(uint32_t number, uint64_t *fetched)
{
    uint8_t bytes[4 * WORDS];
    uint32_t w[WORDS], cycles = 1;
    if (chip.bus->read(chip.bus->context, reg[REG_STREAM] + 4u * WORDS * number, bytes, 4u * WORDS) != 0) {
        return false;
    }
    for (uint32_t i = 0; i < WORDS; ++i) {
        w[i] = (uint32_t)word_at(bytes + 4u * i);
    }
    switch (w[0] & 0xFFu) {
    case LOAD:
        return transfer(w, &cycles) && take_time(number, w, LOADS, cycles, fetched);
    case MULTIPLY:
        return multiply(w, &cycles) && take_time(number, w, COMPUTES, cycles, fetched);
    case STORE:
        return transfer(w, &cycles) && take_time(number, w, STORES, cycles, fetched);
    case SYNC:
        return take_time(number, w, COMPUTES, cycles, fetched);
    default:
        return false;
    }
}

/* The whole stream; the value is the status after it. */
static uint32_t work(uint32_t value)
{
    uint64_t fetched = FETCH_START, end = 0;
    if (value == 0) {
        return 0;
    }
    for (uint32_t i = 0; i < ENGINES; ++i) {
        given[i] = 0;
        idle[i] = 0;
        for (uint32_t j = 0; j < QUEUE; ++j) {
            begun[i][j] = 0;
        }
    }
    for (uint32_t i = 0; i < 4; ++i) {
        tokens[i].pushed = tokens[i].popped = 0;
    }
    for (reg[REG_FAILED] = 0; reg[REG_FAILED] < reg[REG_COMMANDS]; ++reg[REG_FAILED]) {
        if (chip.fault == UACCEL_FAULT_ERROR || !play(reg[REG_FAILED], &fetched)) {
            return DONE | FAILED;
        }
    }
    for (uint32_t i = 0; i < ENGINES; ++i) {
        end = idle[i] > end ? idle[i] : end;
    }
    reg[REG_CYCLES] = (uint32_t)end;
    chip.busy += end;
    return DONE;
}

extern const struct uaccel_device_model trio_device;
const struct uaccel_device_model trio_device = UACCEL_REGISTERS_MODEL("trio", chip, REG_START, REGS);
