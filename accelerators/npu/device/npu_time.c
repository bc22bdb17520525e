/* How long commands take until they are in hand, and computations: the rules of docs/reference/npu.md, those of the
 * RTL. */
#include "npu_device.h"

/* Cycles before the first result and behind the last one, and taps of a window that slides. */
enum { FED = 29, WEIGHED = 16, SLID = 28, SLID_WEIGHED = 17, POOLED = 19, MEAN = 8, ADDED = 7, UNFINISHED = 6 };
enum { KEPT = 32, PARAMETER_BYTES = 12 * NPU_COLUMNS };

static uint64_t divided_up(uint64_t value, uint64_t by)
{
    return (value + by - 1u) / by;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Cycles in which the numbers of an addition are read. */
static uint64_t added(void)
{
    return divided_up(4u * NPU_ADDITION_WORDS, NPU_TILE);
}

/* Parameters that are read and looked at before the first result. */
static uint64_t parameters(const struct npu_command *command, uint32_t channels)
{
    const bool adds = (command->words[0] & NPU_RESIDUAL) != 0;
    return NPU_SYMBOL(blocks)(channels) * divided_up(PARAMETER_BYTES, NPU_TILE) + (adds ? 1u + added() : 0u);
}

/* What feeding one window takes, a piece of a run a cycle; `late`: how much its vectors come behind one a cycle. */
struct feeding {
    uint64_t pieces, late;
};

static struct feeding feed(const struct npu_window *w, uint64_t begin, uint64_t end)
{
    const bool whole = w->input_pixel == w->run && w->dilation_x == 1;
    const uint64_t run = whole ? (uint64_t)w->run * w->kernel_columns : w->run;
    struct feeding found = {0, 0};
    uint64_t vectors = 0;
    for (uint64_t at = begin, piece; at < end; at += piece) {
        piece = smaller(smaller(NPU_ROWS, run - at % run), end - at);
        const uint64_t fed = at + piece - begin;
        const bool last = fed == end - begin, over = (at - begin) % NPU_ROWS + piece > NPU_ROWS;
        found.pieces += last && over ? 2u : 1u;
        while (vectors < (last ? divided_up(fed, NPU_ROWS) : fed / NPU_ROWS)) {
            const uint64_t at_hand = found.pieces - (last && over && fed / NPU_ROWS > vectors ? 1u : 0u);
            found.late = larger(found.late, at_hand - 1u - vectors++);
        }
    }
    return found;
}

static struct feeding fed_to(const struct npu_command *command, const struct npu_window *w)
{
    const uint64_t first = npu_low(command->words[15]), steps = npu_high(command->words[15]);
    const uint64_t depth = (uint64_t)w->kernel_rows * w->kernel_columns * w->run;
    return feed(w, first * NPU_ROWS, smaller((first + steps) * NPU_ROWS, depth));
}

static uint64_t convolve(const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const uint64_t first = npu_low(command->words[15]), steps = npu_high(command->words[15]);
    const struct feeding fed = fed_to(command, &w);
    const uint64_t pixels = (uint64_t)w.rows * w.columns, array = NPU_SYMBOL(blocks)(w.channels) * steps;
    const uint64_t skipped = first * NPU_ROWS / w.run;
    const uint64_t fastest = larger(pixels * array, (pixels - 1u) * fed.pieces + array);
    if ((command->words[0] & NPU_KEEP) != 0) {
        return FED - UNFINISHED + skipped + fed.late + fastest;
    }
    const uint64_t cycles =
        larger(FED + skipped + fed.late + fastest, WEIGHED + parameters(command, w.channels) + pixels * array);
    return cycles + ((command->words[0] & NPU_RESIDUAL) != 0 ? ADDED : 0u);
}

/* Windows slide along a row: from column to column some taps stay, unless there are too many. */
static struct npu_slides slides(const struct npu_command *command, const struct npu_window *w)
{
    const uint64_t taps = (uint64_t)w->kernel_rows * w->kernel_columns;
    const uint64_t column = taps > KEPT ? w->kernel_rows : divided_up(w->kernel_rows, NPU_PORTS);
    const uint64_t more = taps > KEPT ? 0u : divided_up(taps, NPU_ROWS) - 1u;
    const bool stays = taps <= KEPT && w->dilation_x == 1 && w->stride_x < w->kernel_columns;
    const uint64_t next = (stays ? w->stride_x : w->kernel_columns) * column + more;
    const uint64_t row = w->kernel_columns * column + more + (w->columns - 1u) * next;
    const struct npu_slides found = {row, npu_high(command->words[3]) != 1 ? larger(row, NPU_COLUMNS + 1u) : row, next};
    return found;
}

static struct npu_slides pools(const struct npu_command *command, const struct npu_window *w)
{
    const uint64_t pieces = w->kernel_columns * divided_up(w->kernel_rows, NPU_PORTS);
    const bool mean = (command->words[0] & NPU_AVERAGE) != 0;
    const uint64_t each = mean ? larger(pieces, MEAN + 1u) : pieces;
    const struct npu_slides found = {pieces, each, each};
    return found;
}

struct npu_slides NPU_SYMBOL(slides)(const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    return (command->words[0] & 0xFFu) == NPU_POOL ? pools(command, &w) : slides(command, &w);
}

static uint64_t depthwise(const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const struct npu_slides s = slides(command, &w);
    const bool shares = npu_high(command->words[3]) != 1;
    const uint64_t rows = (uint64_t)w.rows * NPU_SYMBOL(blocks)(w.channels);
    const uint64_t begin = larger(SLID, SLID_WEIGHED + parameters(command, w.channels));
    const uint64_t cycles = (shares ? larger(begin, NPU_COLUMNS + 16u) : begin) + (rows - 1u) * s.each + s.row;
    return cycles + ((command->words[0] & NPU_RESIDUAL) != 0 ? ADDED : 0u);
}

static uint64_t pool(const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const struct npu_slides s = pools(command, &w);
    const uint64_t windows = (uint64_t)w.rows * w.columns * NPU_SYMBOL(blocks)(w.channels);
    return POOLED + ((command->words[0] & NPU_AVERAGE) != 0 ? MEAN : 0u) + s.row + (windows - 1u) * s.each;
}

uint64_t NPU_SYMBOL(pieces)(const struct npu_command *command)
{
    if ((command->words[0] & 0xFFu) == NPU_PACK) {
        const struct npu_pack p = NPU_SYMBOL(pack_of)(command);
        return p.turned ? (uint64_t)p.depth * NPU_SYMBOL(blocks)(p.channels)
                        : p.channels * divided_up(p.depth, NPU_ROWS);
    }
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    return fed_to(command, &w).pieces;
}

uint64_t NPU_SYMBOL(duration)(const struct npu_command *command)
{
    const uint32_t *const words = command->words;
    switch (words[0] & 0xFFu) {
    case NPU_CONVOLVE:
        return convolve(command);
    case NPU_DEPTHWISE:
        return depthwise(command);
    case NPU_POOL:
        return pool(command);
    case NPU_ADD:
        return 14u + added() + words[8] * divided_up(words[7], NPU_COLUMNS);
    case NPU_LOOKUP:
        return 6u + divided_up(NPU_TABLE_BYTES, NPU_TILE) + words[6] * divided_up(words[5], NPU_PORTS);
    case NPU_PACK:
        return 5u + NPU_SYMBOL(pieces)(command); /* a run a cycle */
    default:
        return 2;
    }
}

/* Each of its numbers is held against the memories, two cycles a product. */
uint64_t NPU_SYMBOL(checking)(const uint32_t *words)
{
    static const uint8_t cycles[] = {0, 14, 14, 34, 30, 16, 14, 4, 12, 10};
    const uint32_t opcode = words[0] & 0xFFu;
    const bool divides = opcode == NPU_DEPTHWISE && npu_high(words[3]) > 1;
    return cycles[opcode] + (divides ? 16u : 0u);
}
