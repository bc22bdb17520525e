/* How long computations take: the rules of docs/npu.md. */
#include "npu_device.h"

static uint64_t divided_up(uint64_t value, uint64_t by)
{
    return (value + by - 1u) / by;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Bytes of a window that lie one after the other: of a tap, of a row of the kernel, or all. */
static uint64_t consecutive(const struct npu_window *w)
{
    const uint64_t row = (uint64_t)w->run * w->kernel_columns;
    if (w->input_pixel != w->run || w->dilation_x != 1) {
        return w->run;
    }
    return w->input_row == row && w->dilation_y == 1 ? row * w->kernel_rows : row;
}

static uint64_t convolve(const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const uint64_t depth = (uint64_t)w.kernel_rows * w.kernel_columns * w.run, run = consecutive(&w);
    const uint32_t first = npu_low(command->words[15]), steps = npu_high(command->words[15]);
    uint64_t cycles = 0;
    for (uint64_t step = first; step < (uint64_t)first + steps; ++step) {
        const uint64_t begin = step * NPU_ROWS, end = begin + NPU_ROWS < depth ? begin + NPU_ROWS : depth;
        cycles += divided_up((end - 1u) / run - begin / run + 1u, NPU_PORTS);
    }
    return NPU_COMPUTE_START + (uint64_t)w.rows * w.columns * NPU_SYMBOL(blocks)(w.channels) * cycles;
}

/* Windows slide along a row: from column to column some taps stay. `groups`: cycles of the array for a window. */
static uint64_t slide(const struct npu_window *w, uint64_t groups)
{
    const uint64_t taps = (uint64_t)w->kernel_rows * w->kernel_columns;
    const uint32_t moved = w->stride_x < w->kernel_columns ? w->stride_x : w->kernel_columns;
    const uint64_t more = w->dilation_x == 1 ? (uint64_t)w->kernel_rows * moved : taps;
    const uint64_t first = larger(groups, divided_up(taps, NPU_PORTS));
    const uint64_t next = larger(groups, divided_up(more, NPU_PORTS));
    const uint64_t row = first + (w->columns - 1u) * next;
    return NPU_COMPUTE_START + (uint64_t)w->rows * NPU_SYMBOL(blocks)(w->channels) * row;
}

/* Runs of a tile's row or column, as many a cycle as the feeder reads. */
static uint64_t pack(const struct npu_command *command)
{
    const struct npu_pack p = NPU_SYMBOL(pack_of)(command);
    const uint64_t runs = p.turned ? (uint64_t)p.depth * NPU_SYMBOL(blocks)(p.channels)
                                   : p.channels * divided_up(p.depth, NPU_ROWS);
    return NPU_COMPUTE_START + divided_up(runs, NPU_PORTS);
}

uint64_t NPU_SYMBOL(duration)(const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    switch (command->words[0] & 0xFFu) {
    case NPU_CONVOLVE:
        return convolve(command);
    case NPU_DEPTHWISE:
        return slide(&w, divided_up((uint64_t)w.kernel_rows * w.kernel_columns, NPU_ROWS));
    case NPU_POOL:
        return slide(&w, 1);
    case NPU_ADD:
        return NPU_COMPUTE_START + command->words[8] * divided_up(command->words[7], NPU_COLUMNS);
    case NPU_LOOKUP:
        return NPU_COMPUTE_START + divided_up(NPU_TABLE_BYTES, NPU_COLUMNS) +
               command->words[6] * divided_up(command->words[5], NPU_PORTS);
    case NPU_PACK:
        return pack(command);
    default:
        return 1;
    }
}
