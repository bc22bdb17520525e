/* What the parts of the model share. docs/reference/npu.md describes the machine. */
#ifndef NPU_DEVICE_H
#define NPU_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "npu_machine.h"
#include "uaccel_device.h"

#define NPU_NEVER UINT64_MAX

enum {
    NPU_PLACES = 64,
    NPU_LONGEST = 21, /* words of a command */
    NPU_TILE = NPU_ROWS * NPU_COLUMNS,
    NPU_CHANNEL_WORDS = 3,  /* bias, multiplier, shift */
    NPU_ADDITION_WORDS = 12,
    NPU_TABLE_BYTES = 256,
    NPU_MOST_TAPS = 65535,
    NPU_GATHERED = NPU_ROWS > NPU_BUS_BYTES ? NPU_ROWS / NPU_BUS_BYTES : 1, /* words that a load writes at once */
    NPU_CAME = NPU_BURST + NPU_UNDER_WAY, /* words of a load that are remembered: those under way */
    NPU_UNPACKED = NPU_UNPACK > 0 ? NPU_UNPACK : 1 /* bytes a cycle, where there is an unpacker */
};

/* A header with other numbers shall not compile if they make no machine. */
typedef char npu_machine_has_rows[NPU_ROWS >= 1 && NPU_ROWS <= 64 ? 1 : -1];
typedef char npu_machine_has_columns[NPU_COLUMNS >= 1 && NPU_COLUMNS <= 64 ? 1 : -1];
typedef char npu_machine_moves[NPU_BUS_BYTES >= 1 && NPU_BURST >= 1 && NPU_RAM_FIRST >= NPU_RAM_NEXT &&
                                       NPU_FLASH_FIRST >= NPU_FLASH_NEXT
                                   ? 1
                                   : -1];
typedef char npu_machine_feeds[NPU_PORTS >= 1 && NPU_PORTS <= 255 && NPU_QUEUE >= 1 && NPU_QUEUE <= 255 ? 1 : -1];
typedef char npu_machine_holds[NPU_ACTIVATION_BYTES >= 1 && NPU_ACTIVATION_BYTES <= 1048576 && NPU_WEIGHT_BYTES >= 1 &&
                                       NPU_WEIGHT_BYTES <= 1048576 && NPU_SUM_BYTES >= 4 &&
                                       NPU_SUM_BYTES <= 1048576 && NPU_SUM_BYTES % 4 == 0
                                   ? 1
                                   : -1];

enum npu_error {
    NPU_OK,
    NPU_STREAM,
    NPU_COMMAND,
    NPU_RANGE,
    NPU_SHAPE,
    NPU_QUANTISATION,
    NPU_BUS,
    NPU_DEADLOCK,
    NPU_TOKEN,
    NPU_BROKEN
};

enum npu_opcode { NPU_LOAD = 1, NPU_STORE, NPU_CONVOLVE, NPU_DEPTHWISE, NPU_POOL, NPU_ADD, NPU_SYNC, NPU_LOOKUP,
                  NPU_PACK };
enum npu_engine { NPU_ENGINE_LOAD, NPU_ENGINE_COMPUTE, NPU_ENGINE_STORE, NPU_ENGINES };
enum npu_memory { NPU_RAM, NPU_FLASH, NPU_MEMORIES };

/* In the first word. */
#define NPU_WAIT_PREVIOUS (1u << 8)
#define NPU_WAIT_NEXT (1u << 9)
#define NPU_PUSH_PREVIOUS (1u << 10)
#define NPU_PUSH_NEXT (1u << 11)
#define NPU_CODED (1u << 16)
#define NPU_CONTINUE (1u << 16)
#define NPU_KEEP (1u << 17)
#define NPU_RESIDUAL (1u << 18)
#define NPU_FLOAT32 (1u << 19)
#define NPU_ONCE (1u << 20)
#define NPU_SHARED (1u << 21)
#define NPU_AVERAGE (1u << 16)
#define NPU_TURNED (1u << 16)

struct npu_place {
    uint32_t base;
    uint32_t limit;
};

struct npu_command {
    uint32_t words[NPU_LONGEST];
    uint32_t index;
};

struct npu_memories {
    uint8_t activations[NPU_ACTIVATION_BYTES];
    uint8_t weights[NPU_WEIGHT_BYTES];
    uint32_t sums[NPU_SUM_BYTES / 4];
};

/* What a windowed command reads and writes. */
struct npu_window {
    uint32_t input, input_row, input_pixel, run;
    uint32_t input_rows, input_columns;
    uint32_t kernel_rows, kernel_columns;
    uint32_t stride_y, stride_x, dilation_y, dilation_x;
    int32_t first_row, first_column;
    uint32_t output, output_row, output_pixel, channels;
    uint32_t rows, columns;
};

/* How a command with weights ends. */
struct npu_finish {
    uint32_t weights, parameters;
    int32_t input_zero_point, output_zero_point, clamp_min, clamp_max;
    uint32_t residual, residual_row, residual_pixel, addition;
    bool adds;
    bool single; /* rounds in single precision */
    bool once;   /* the addition rounds once */
};

struct npu_transfer {
    uint32_t place, memory, offset, address, run, runs, planes;
    uint32_t strides[2], pitches[2]; /* from run to run, from plane to plane: in the place, in the memory */
};

/* Bytes in memory: `counts` runs, and as many of them again, each so far from the one before. */
struct npu_runs {
    uint32_t address, run, counts[2], strides[2];
};

/* Words that are asked for at once. */
struct npu_burst {
    uint64_t word;
    uint32_t words;
};

/* The words that come. `behind`: the word behind the last burst of each memory; `gave`: when it offered its last one. */
struct npu_reads {
    uint64_t free; /* from when on the next word may come */
    struct {
        uint64_t behind, gave;
        bool gives;
    } memories[NPU_MEMORIES];
};

/* Results of a computation: `groups` of `count`, so many cycles from group to group and from result to result. */
struct npu_results {
    uint64_t groups, period, count, step;
    bool to_weights;
};

/* Cycles that a row of windows takes, that it takes among others, and from a window to the next. */
struct npu_slides {
    uint64_t row, each, next;
};

/* A code, read byte by byte: `bit` is the one behind the last byte, `ones` how many that one began with. */
struct npu_code {
    const struct uaccel_bus *bus;
    uint32_t address, left, size, number, kind; /* left: what was not read yet */
    uint8_t chunk[64];
    uint32_t at, count; /* in bits, of the chunk */
    uint64_t bit;
    uint32_t ones;
    bool refused;
};

/* A load that unpacks `all` words: `given` bytes up to `now`, and `gone` ones of the next. `whole`: how many bytes were
 * whole with the words before the last one, and with it; `alone`: of those bytes, how often ones go alone. */
struct npu_unpacking {
    struct npu_code code;
    uint32_t skipped, all, words, given, gone, whole[2];
    uint64_t now;
    uint32_t alone[256];
};

/* What the load engine still moves: `done` words of the run `at`. `asks`: when it does next; `end`: when its command
 * ends. Results that are written at the same time end at `results_end`. */
struct npu_loading {
    struct npu_runs runs;
    enum npu_memory memory;
    bool to_weights, coded;
    uint32_t done, at[2], asked;
    uint64_t asks, end, came[NPU_CAME];
    uint32_t left, there; /* words of the run; words of a vector that is not whole */
    uint64_t written, before; /* when the last vector was, and the one before */
    const struct npu_results *results;
    uint64_t results_end;
    struct npu_unpacking unpacking;
};

/* Commands on their way. `at`: what was put together, in steps of a cycle, up to `end` of the next command and `behind`
 * the last one; `whole`: when the next one is. */
struct npu_fetching {
    uint32_t first, words, asked, used, at, end, behind;
    uint64_t asks, last, next, whole;
    uint64_t came[NPU_FETCH_ROOM], used_at[NPU_FETCH_ROOM];
};

/* A matrix of activations that becomes weights: `channels` filters of `depth`. */
struct npu_pack {
    uint32_t source, row, depth, channels, weights;
    bool turned; /* a row has a value of each channel, not all of one */
};

struct npu_addition {
    int32_t left_shift; /* once: the right shift */
    int32_t zero_point1, multiplier1, shift1;
    int32_t zero_point2, multiplier2, shift2;
    int32_t output_zero_point, output_multiplier, output_shift; /* once: the multiplier is the tolerance */
    int32_t clamp_min, clamp_max;
    bool once; /* rounds the real result once */
};

/* The rack's bus, and what the driver told of places. */
struct npu_outside {
    const struct uaccel_bus *bus;
    struct npu_place places[NPU_PLACES];
};

/* A job: engines, their queues and tokens. */
struct npu_job {
    uint64_t begin; /* cycles since reset, for whoever listens */
    uint64_t end;
    uint64_t busy[NPU_ENGINES];
    uint32_t failed; /* index of the command */
};

static inline uint32_t npu_low(uint32_t word)
{
    return word & 0xFFFFu;
}

static inline uint32_t npu_high(uint32_t word)
{
    return word >> 16;
}

static inline uint32_t npu_octet(uint32_t word, uint32_t number)
{
    return word >> (8u * number) & 0xFFu;
}

/* npu_decode.c: the fields of a command, and whether they make sense and stay inside. */
uint32_t NPU_SYMBOL(words_of)(uint32_t first); /* of its command; 0: there is no such command */
enum npu_engine NPU_SYMBOL(engine_of)(uint32_t first);
enum npu_error NPU_SYMBOL(check)(const struct npu_command *command, const struct npu_outside *outside);
struct npu_transfer NPU_SYMBOL(transfer_of)(const struct npu_command *command);
struct npu_window NPU_SYMBOL(window_of)(const struct npu_command *command);
struct npu_finish NPU_SYMBOL(finish_of)(const struct npu_command *command);
struct npu_pack NPU_SYMBOL(pack_of)(const struct npu_command *command);

/* npu_time.c: how many cycles a computation takes, and to check a command of `words`; runs of PACK, or pieces that a
 * window of CONVOLVE is fed in; windows of DEPTHWISE and POOL. */
uint64_t NPU_SYMBOL(duration)(const struct npu_command *command);
uint64_t NPU_SYMBOL(checking)(const uint32_t *words);
uint64_t NPU_SYMBOL(pieces)(const struct npu_command *command);
struct npu_slides NPU_SYMBOL(slides)(const struct npu_command *command);

/* npu_results.c: when results are written; the next cycle in which none is by the command that ends at `end`. */
struct npu_results NPU_SYMBOL(results_of)(const struct npu_command *command);
uint64_t NPU_SYMBOL(results_free)(const struct npu_results *results, uint64_t now, uint64_t end);

/* npu_bus.c: words that come. `times`: when each one of the burst is taken, by a load, if there is one. */
void NPU_SYMBOL(bus_idle)(struct npu_reads *reads);
void NPU_SYMBOL(bus_ask)(struct npu_reads *reads, enum npu_memory memory, const struct npu_burst *burst, uint64_t now,
                         struct npu_loading *loading, uint64_t *times);

/* npu_load.c: bursts of a load, and when it takes a word that is offered. */
void NPU_SYMBOL(load_idle)(struct npu_loading *loading);
void NPU_SYMBOL(load_begin)(struct npu_loading *loading, const struct npu_command *command,
                            const struct npu_outside *outside, uint64_t now);
void NPU_SYMBOL(load_asks)(struct npu_loading *loading, struct npu_reads *reads, uint64_t now);
uint64_t NPU_SYMBOL(load_takes)(struct npu_loading *loading, uint64_t offered);

/* npu_fetch.c: bursts of commands, and when the next command of so many words is whole. */
void NPU_SYMBOL(fetch_begin)(struct npu_fetching *fetching, uint32_t address, uint32_t length);
void NPU_SYMBOL(fetch_asks)(struct npu_fetching *fetching, struct npu_reads *reads, uint64_t now);
void NPU_SYMBOL(fetch_next)(struct npu_fetching *fetching, uint32_t words);

/* npu_engines.c: fetch and execute a stream. */
enum npu_error NPU_SYMBOL(run)(struct npu_job *job, struct npu_memories *memories, const struct npu_outside *outside,
                               uint32_t address, uint32_t length);

/* npu_code.c: the bytes of a code. */
void NPU_SYMBOL(code_begin)(struct npu_code *code, const struct npu_outside *outside,
                            const struct npu_transfer *transfer);
uint8_t NPU_SYMBOL(code_byte)(struct npu_code *code);
enum npu_error NPU_SYMBOL(unpack)(const struct npu_outside *outside, const struct npu_transfer *transfer, uint8_t *to);

/* npu_unpack.c: when a load that unpacks takes a word that is offered, and when it has given all bytes. */
void NPU_SYMBOL(unpack_begin)(struct npu_unpacking *unpacking, const struct npu_outside *outside,
                              const struct npu_transfer *transfer);
uint64_t NPU_SYMBOL(unpack_takes)(struct npu_unpacking *unpacking, uint64_t offered);
uint64_t NPU_SYMBOL(unpack_ends)(struct npu_unpacking *unpacking);

/* npu_transfer.c: where a transfer's bytes lie in memory. */
struct npu_runs NPU_SYMBOL(runs_of)(const struct npu_command *command, const struct npu_outside *outside);

/* One command each, which has been checked. */
enum npu_error NPU_SYMBOL(transfer)(struct npu_memories *memories, const struct npu_outside *outside,
                                    const struct npu_command *command);
enum npu_error NPU_SYMBOL(convolve)(struct npu_memories *memories, const struct npu_command *command);
enum npu_error NPU_SYMBOL(depthwise)(struct npu_memories *memories, const struct npu_command *command);
enum npu_error NPU_SYMBOL(pool)(struct npu_memories *memories, const struct npu_command *command);
enum npu_error NPU_SYMBOL(add)(struct npu_memories *memories, const struct npu_command *command);
void NPU_SYMBOL(lookup)(struct npu_memories *memories, const struct npu_command *command);
void NPU_SYMBOL(pack)(struct npu_memories *memories, const struct npu_command *command);

/* npu_output.c: from sums to bytes. */
uint32_t NPU_SYMBOL(blocks)(uint32_t channels); /* of NPU_COLUMNS channels, the last one may be smaller */
enum npu_error NPU_SYMBOL(check_finish)(const struct npu_memories *memories, const struct npu_window *window,
                                        const struct npu_finish *finish, struct npu_addition *addition);
enum npu_error NPU_SYMBOL(addition_at)(const struct npu_memories *memories, uint32_t address, bool once,
                                       struct npu_addition *addition);
int8_t NPU_SYMBOL(added)(const struct npu_addition *addition, int8_t first, int8_t second);
/* One channel of one pixel: its sum as the array leaves it, through the output stage to its place. */
void NPU_SYMBOL(finish)(struct npu_memories *memories, const struct npu_window *window,
                        const struct npu_finish *finish, const struct npu_addition *addition, uint32_t row,
                        uint32_t column, uint32_t channel, uint32_t sum);

#endif
