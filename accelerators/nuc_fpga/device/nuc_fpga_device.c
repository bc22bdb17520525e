/* nuc_fpga: what it computes, and roughly how long that takes it.
 *
 * Eight filters times eight columns are multiplied in a cycle. On the chip there are one line of one input channel, the
 * weights of eight filters, as many channels of them as fit, and one line of sums for each of the eight. */
#include <stdbool.h>

#include "uaccel_registers.h"

#define IDENTITY 0x4E554346u
#define VERSION_1_0 0x00010000u

enum {
    ABREAST = 8, /* filters, columns */
    LINE = 1024, /* bytes of a line with its padding */
    WEIGHTS = 32768,
    LARGEST_KERNEL = 16,
    LARGEST = 65535, /* of every other parameter */
    BUS_BYTES = 8,   /* that the bus moves in a cycle */
    START_UP = 200   /* cycles */
};

enum {
    REG_IDENTITY,
    REG_VERSION,
    REG_CONTROL,
    REG_STOP,
    REG_STATUS,
    REG_ERROR,
    REG_INTERRUPT,
    REG_FEATURES,
    REG_KERNEL,
    REG_OUT,
    REG_BATCH,
    REG_IN_CH,
    REG_IN_HEIGHT,
    REG_IN_WIDTH,
    REG_KERNEL_NUMBER,
    REG_GROUP,
    REG_PAD_HEIGHT,
    REG_PAD_WIDTH,
    REG_KERNEL_HEIGHT,
    REG_KERNEL_WIDTH,
    REG_STRIDE_HEIGHT,
    REG_STRIDE_WIDTH,
    REG_CYCLES_LOW,
    REG_CYCLES_HIGH,
    REGS
};

enum { CONV2D = 1, DENSE = 2 };
enum { DONE = 1, FAILED = 2 };
enum error { NO_ERROR, BAD_PARAMETER, BUS_ERROR, INTERNAL };

static uint32_t reg[REGS];

static struct {
    uint64_t cycles;     /* of the job */
    uint64_t multiplies; /* cycles of the line under way, if the bus were quick enough */
    uint64_t moved;      /* bytes since the last line */
    int8_t line[LINE];
    int8_t weights[WEIGHTS];
    uint32_t sums[ABREAST][LINE];
} chip;

static uint32_t work(uint32_t job);
static void written(uint32_t index, uint32_t value);

static struct uaccel_registers registers = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION_1_0,
    .first = REG_INTERRUPT,
    .last = REG_STRIDE_WIDTH,
    .start = REG_CONTROL,
    .status = REG_STATUS,
    .work = work,
    .written = written,
};

/* A convolution that has been found possible: below, no product of these exceeds 32 bits but where it says so. */
struct geometry {
    uint32_t rows;      /* of the output */
    uint32_t columns;   /* of the output */
    uint32_t depth;     /* input channels of a filter */
    uint32_t per_group; /* filters */
    uint32_t window;    /* weights of a filter's channel */
    uint32_t step;      /* input channels whose weights are on the chip at once */
};

/* Filters that are worked on together, and where the channels lie that they see. */
struct block {
    uint32_t batch;
    uint32_t filter; /* the first */
    uint32_t count;
    uint32_t channel; /* the first that they see */
};

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t groups_of(uint32_t count, uint32_t size)
{
    return (count + size - 1u) / size;
}

static bool load(void *to, uint32_t address, uint32_t bytes)
{
    chip.moved += bytes;
    return registers.bus->read(registers.bus->context, address, to, bytes) == 0;
}

static bool store(uint32_t address, const void *from, uint32_t bytes)
{
    chip.moved += bytes;
    return registers.bus->write(registers.bus->context, address, from, bytes) == 0;
}

/* A line is done: it took as long as the multipliers or as the bus, whatever was longer. */
static void count_line(void)
{
    const uint64_t bus = (chip.moved + BUS_BYTES - 1u) / BUS_BYTES;
    chip.cycles += bus > chip.multiplies ? bus : chip.multiplies;
    chip.moved = 0;
    chip.multiplies = 0;
}

static void clear_sums(uint32_t count, uint32_t columns)
{
    for (uint32_t b = 0; b < count; ++b) {
        for (uint32_t x = 0; x < columns; ++x) {
            chip.sums[b][x] = 0;
        }
    }
}

/* Sums wrap, as adders do. */
static uint32_t product(int8_t a, int8_t b)
{
    return (uint32_t)(int32_t)(a * b);
}

/* -- convolution ---------------------------------------------------------------------------------------------------- */

static bool load_weights(const struct geometry *g, const struct block *block, uint32_t first, uint32_t channels)
{
    const uint32_t bytes = channels * g->window;
    for (uint32_t b = 0; b < block->count; ++b) {
        const uint32_t offset = ((block->filter + b) * g->depth + first) * g->window;
        if (!load(chip.weights + b * bytes, reg[REG_KERNEL] + offset, bytes)) {
            return false;
        }
    }
    return true;
}

/* One line of input times one line of every filter's window. `weights`: of the first filter; the next lie `apart`. */
static void multiply_line(const struct geometry *g, uint32_t count, const int8_t *weights, uint32_t apart)
{
    const uint32_t stride = reg[REG_STRIDE_WIDTH];
    for (uint32_t b = 0; b < count; ++b) {
        for (uint32_t kx = 0; kx < reg[REG_KERNEL_WIDTH]; ++kx) {
            const int8_t weight = weights[b * apart + kx];
            for (uint32_t x = 0; x < g->columns; ++x) {
                chip.sums[b][x] += product(chip.line[x * stride + kx], weight);
            }
        }
    }
    chip.multiplies += reg[REG_KERNEL_WIDTH] * groups_of(g->columns, ABREAST);
}

/* What one input channel adds to line y of the output. */
static bool add_channel(const struct geometry *g, const struct block *block, uint32_t channel, uint32_t y,
                        const int8_t *weights, uint32_t apart)
{
    const uint32_t height = reg[REG_IN_HEIGHT];
    const uint32_t width = reg[REG_IN_WIDTH];
    const uint32_t plane = (block->batch * reg[REG_IN_CH] + channel) * height;
    for (uint32_t ky = 0; ky < reg[REG_KERNEL_HEIGHT]; ++ky) {
        const uint32_t row = y * reg[REG_STRIDE_HEIGHT] + ky - reg[REG_PAD_HEIGHT]; /* huge where above the first */
        if (row >= height) {
            continue;
        }
        if (!load(chip.line + reg[REG_PAD_WIDTH], reg[REG_FEATURES] + (plane + row) * width, width)) {
            return false;
        }
        multiply_line(g, block->count, weights + ky * reg[REG_KERNEL_WIDTH], apart);
    }
    return true;
}

static bool store_line(const struct geometry *g, const struct block *block, uint32_t y)
{
    for (uint32_t b = 0; b < block->count; ++b) {
        const uint32_t line = (block->batch * reg[REG_KERNEL_NUMBER] + block->filter + b) * g->rows + y;
        if (!store(reg[REG_OUT] + 4u * line * g->columns, chip.sums[b], 4u * g->columns)) {
            return false;
        }
    }
    return true;
}

static bool compute_line(const struct geometry *g, const struct block *block, uint32_t y)
{
    clear_sums(block->count, g->columns);
    for (uint32_t first = 0; first < g->depth; first += g->step) {
        const uint32_t channels = smaller(g->step, g->depth - first);
        const bool held = y > 0 && g->step >= g->depth;
        if (!held && !load_weights(g, block, first, channels)) {
            return false;
        }
        for (uint32_t i = 0; i < channels; ++i) {
            const int8_t *const weights = chip.weights + i * g->window;
            if (!add_channel(g, block, block->channel + first + i, y, weights, channels * g->window)) {
                return false;
            }
        }
    }
    return store_line(g, block, y);
}

static enum error compute_block(const struct geometry *g, const struct block *block)
{
    for (uint32_t y = 0; y < g->rows; ++y) {
        if (!compute_line(g, block, y)) {
            return BUS_ERROR;
        }
        count_line();
    }
    return NO_ERROR;
}

/* Whether a tensor ends where addresses do, or before. */
static bool fits(uint32_t address, uint64_t elements, uint32_t bytes)
{
    return elements <= ((UINT64_C(1) << 32) - address) / bytes;
}

static bool is_within(uint32_t index, uint32_t lowest, uint32_t highest)
{
    return reg[index] >= lowest && reg[index] <= highest;
}

static bool are_parameters_good(void)
{
    for (uint32_t index = REG_BATCH; index <= REG_STRIDE_WIDTH; ++index) {
        const bool is_pad = index == REG_PAD_HEIGHT || index == REG_PAD_WIDTH;
        if (!is_within(index, is_pad ? 0 : 1, LARGEST)) {
            return false;
        }
    }
    return is_within(REG_KERNEL_HEIGHT, 1, smaller(LARGEST_KERNEL, reg[REG_IN_HEIGHT] + 2u * reg[REG_PAD_HEIGHT])) &&
           is_within(REG_KERNEL_WIDTH, 1, smaller(LARGEST_KERNEL, reg[REG_IN_WIDTH] + 2u * reg[REG_PAD_WIDTH])) &&
           reg[REG_IN_WIDTH] + 2u * reg[REG_PAD_WIDTH] <= LINE && reg[REG_IN_CH] % reg[REG_GROUP] == 0 &&
           reg[REG_KERNEL_NUMBER] % reg[REG_GROUP] == 0;
}

static struct geometry geometry_of_the_job(void)
{
    const uint32_t height = reg[REG_IN_HEIGHT] + 2u * reg[REG_PAD_HEIGHT] - reg[REG_KERNEL_HEIGHT];
    const uint32_t width = reg[REG_IN_WIDTH] + 2u * reg[REG_PAD_WIDTH] - reg[REG_KERNEL_WIDTH];
    const uint32_t window = reg[REG_KERNEL_HEIGHT] * reg[REG_KERNEL_WIDTH];
    const struct geometry g = {
        .rows = height / reg[REG_STRIDE_HEIGHT] + 1u,
        .columns = width / reg[REG_STRIDE_WIDTH] + 1u,
        .depth = reg[REG_IN_CH] / reg[REG_GROUP],
        .per_group = reg[REG_KERNEL_NUMBER] / reg[REG_GROUP],
        .window = window,
        .step = WEIGHTS / (ABREAST * window),
    };
    return g;
}

static bool does_all_fit(const struct geometry *g)
{
    const uint64_t lines_in = (uint64_t)reg[REG_BATCH] * reg[REG_IN_CH] * reg[REG_IN_HEIGHT];
    const uint64_t lines_out = (uint64_t)reg[REG_BATCH] * reg[REG_KERNEL_NUMBER] * g->rows;
    const uint64_t channels = (uint64_t)reg[REG_KERNEL_NUMBER] * g->depth;
    return fits(reg[REG_FEATURES], lines_in * reg[REG_IN_WIDTH], 1) && fits(reg[REG_KERNEL], channels * g->window, 1) &&
           fits(reg[REG_OUT], lines_out * g->columns, 4);
}

static enum error convolve(void)
{
    if (!are_parameters_good()) {
        return BAD_PARAMETER;
    }
    const struct geometry g = geometry_of_the_job();
    if (!does_all_fit(&g)) {
        return BUS_ERROR;
    }
    for (uint32_t i = 0; i < LINE; ++i) {
        chip.line[i] = 0; /* the padding; loads leave it alone */
    }
    for (uint32_t batch = 0; batch < reg[REG_BATCH]; ++batch) {
        for (uint32_t filter = 0; filter < reg[REG_KERNEL_NUMBER];) {
            const uint32_t left = g.per_group - filter % g.per_group;
            const struct block block = {batch, filter, smaller(ABREAST, left), filter / g.per_group * g.depth};
            const enum error error = compute_block(&g, &block);
            if (error != NO_ERROR) {
                return error;
            }
            filter += block.count;
        }
    }
    return NO_ERROR;
}

/* -- matrices ------------------------------------------------------------------------------------------------------- */

/* What `bytes` numbers from `first` on of a row add to the sums of `count` units from `unit` on. */
static bool add_piece(uint32_t row, uint32_t unit, uint32_t count, uint32_t first, uint32_t bytes)
{
    const uint32_t depth = reg[REG_IN_CH];
    if (!load(chip.line, reg[REG_FEATURES] + row * depth + first, bytes)) {
        return false;
    }
    for (uint32_t b = 0; b < count; ++b) {
        if (!load(chip.weights, reg[REG_KERNEL] + (unit + b) * depth + first, bytes)) {
            return false;
        }
        for (uint32_t i = 0; i < bytes; ++i) {
            chip.sums[b][0] += product(chip.line[i], chip.weights[i]);
        }
    }
    chip.multiplies += groups_of(bytes, ABREAST);
    return true;
}

static bool compute_units(uint32_t row, uint32_t unit, uint32_t count)
{
    uint32_t sums[ABREAST];
    clear_sums(count, 1);
    for (uint32_t first = 0; first < reg[REG_IN_CH]; first += LINE) {
        if (!add_piece(row, unit, count, first, smaller(LINE, reg[REG_IN_CH] - first))) {
            return false;
        }
    }
    for (uint32_t b = 0; b < count; ++b) {
        sums[b] = chip.sums[b][0];
    }
    count_line();
    return store(reg[REG_OUT] + 4u * (row * reg[REG_KERNEL_NUMBER] + unit), sums, 4u * count);
}

static enum error multiply_matrices(void)
{
    const uint64_t rows = reg[REG_BATCH];
    const uint64_t units = reg[REG_KERNEL_NUMBER];
    if (!is_within(REG_BATCH, 1, LARGEST) || !is_within(REG_IN_CH, 1, LARGEST) ||
        !is_within(REG_KERNEL_NUMBER, 1, LARGEST)) {
        return BAD_PARAMETER;
    }
    if (!fits(reg[REG_FEATURES], rows * reg[REG_IN_CH], 1) || !fits(reg[REG_KERNEL], units * reg[REG_IN_CH], 1) ||
        !fits(reg[REG_OUT], rows * units, 4)) {
        return BUS_ERROR;
    }
    for (uint32_t row = 0; row < reg[REG_BATCH]; ++row) {
        for (uint32_t unit = 0; unit < reg[REG_KERNEL_NUMBER]; unit += ABREAST) {
            if (!compute_units(row, unit, smaller(ABREAST, reg[REG_KERNEL_NUMBER] - unit))) {
                return BUS_ERROR;
            }
        }
    }
    count_line();
    return NO_ERROR;
}

/* -- registers ------------------------------------------------------------------------------------------------------ */

static enum error do_job(uint32_t job)
{
    if (registers.fault == UACCEL_FAULT_ERROR) {
        return INTERNAL;
    }
    return job == CONV2D ? convolve() : job == DENSE ? multiply_matrices() : BAD_PARAMETER;
}

static uint32_t work(uint32_t job)
{
    chip.cycles = START_UP;
    chip.multiplies = 0;
    chip.moved = 0;
    const enum error error = do_job(job);
    registers.busy += chip.cycles;
    reg[REG_CYCLES_LOW] = (uint32_t)chip.cycles;
    reg[REG_CYCLES_HIGH] = (uint32_t)(chip.cycles >> 32);
    reg[REG_ERROR] = error;
    return error == NO_ERROR ? DONE : DONE | FAILED;
}

static void written(uint32_t index, uint32_t value)
{
    (void)value;
    if (index == REG_STATUS || index == REG_STOP) {
        reg[REG_STATUS] = 0;
    }
    const bool raised = reg[REG_INTERRUPT] == 1 && (reg[REG_STATUS] & DONE) != 0;
    registers.bus->interrupt(registers.bus->context, raised ? 1 : 0);
}

extern const struct uaccel_device_model nuc_fpga_device;
const struct uaccel_device_model nuc_fpga_device = UACCEL_REGISTERS_MODEL("nuc_fpga", registers, REG_CONTROL, REGS);
