/* vanilla: one line of one input channel, one window of weights and one line of sums on the chip; a product a cycle. */
#include <stdbool.h>

#include "uaccel_registers.h"

#define IDENTITY 0x56414E49u
#define VERSION_1_0 0x00010000u

enum { LINE = 1024, LARGEST_KERNEL = 16, LARGEST = 65535, START_UP = 20 };

enum {
    REG_IDENTITY,
    REG_VERSION,
    REG_START,
    REG_STATUS,
    REG_INPUT,
    REG_WEIGHTS,
    REG_OUTPUT,
    REG_IN_CHANNELS,
    REG_HEIGHT,
    REG_WIDTH,
    REG_OUT_CHANNELS,
    REG_KERNEL_HEIGHT,
    REG_KERNEL_WIDTH,
    REG_CYCLES,
    REGS
};

enum { DONE = 1, FAILED = 2, REFUSED = 4, IMPOSSIBLE = 8 };

static uint32_t reg[REGS];
static float line_of_input[LINE + LARGEST_KERNEL];
static float weights[LARGEST_KERNEL * LARGEST_KERNEL];
static float sums[LINE];

static uint32_t work(uint32_t value);

static struct uaccel_registers chip = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION_1_0,
    .first = REG_INPUT,
    .last = REG_KERNEL_WIDTH,
    .start = REG_START,
    .status = REG_STATUS,
    .work = work,
};

/* `count` numbers, the first being number `first` of a tensor. */
static bool load(float *to, uint32_t tensor, uint32_t first, uint32_t count)
{
    return chip.bus->read(chip.bus->context, reg[tensor] + 4u * first, to, 4u * count) == 0;
}

/* What one channel of the input adds to line y of channel k. */
static bool add_channel(uint32_t k, uint32_t c, uint32_t y)
{
    const uint32_t height = reg[REG_KERNEL_HEIGHT];
    const uint32_t width = reg[REG_KERNEL_WIDTH];
    if (!load(weights, REG_WEIGHTS, (k * reg[REG_IN_CHANNELS] + c) * height * width, height * width)) {
        return false;
    }
    for (uint32_t ky = 0; ky < height; ++ky) {
        const uint32_t row = y + ky - (height - 1u) / 2u; /* huge where above the first */
        if (row >= reg[REG_HEIGHT]) {
            continue;
        }
        if (!load(line_of_input + (width - 1u) / 2u, REG_INPUT, (c * reg[REG_HEIGHT] + row) * reg[REG_WIDTH],
                  reg[REG_WIDTH])) {
            return false;
        }
        for (uint32_t kx = 0; kx < width; ++kx) {
            for (uint32_t x = 0; x < reg[REG_WIDTH]; ++x) {
                sums[x] += line_of_input[x + kx] * weights[ky * width + kx];
            }
        }
    }
    return true;
}

static bool compute_line(uint32_t k, uint32_t y)
{
    const uint32_t line = k * reg[REG_HEIGHT] + y;
    for (uint32_t x = 0; x < reg[REG_WIDTH]; ++x) {
        sums[x] = 0;
    }
    for (uint32_t c = 0; c < reg[REG_IN_CHANNELS]; ++c) {
        if (!add_channel(k, c, y)) {
            return false;
        }
    }
    return chip.bus->write(chip.bus->context, reg[REG_OUTPUT] + 4u * line * reg[REG_WIDTH], sums,
                           4u * reg[REG_WIDTH]) == 0;
}

static bool is_possible(void)
{
    for (uint32_t index = REG_IN_CHANNELS; index <= REG_KERNEL_WIDTH; ++index) {
        if (reg[index] < 1 || reg[index] > LARGEST) {
            return false;
        }
    }
    return reg[REG_WIDTH] <= LINE && reg[REG_KERNEL_HEIGHT] <= LARGEST_KERNEL && reg[REG_KERNEL_WIDTH] <= LARGEST_KERNEL;
}

/* Whether a tensor ends where addresses do, or before. */
static bool fits(uint32_t tensor, uint64_t elements)
{
    return elements <= ((UINT64_C(1) << 32) - reg[tensor]) / 4u;
}

static bool do_tensors_fit(void)
{
    const uint64_t pixels = (uint64_t)reg[REG_HEIGHT] * reg[REG_WIDTH];
    const uint64_t window = (uint64_t)reg[REG_KERNEL_HEIGHT] * reg[REG_KERNEL_WIDTH];
    return fits(REG_INPUT, pixels * reg[REG_IN_CHANNELS]) && fits(REG_OUTPUT, pixels * reg[REG_OUT_CHANNELS]) &&
           fits(REG_WEIGHTS, window * reg[REG_IN_CHANNELS] * reg[REG_OUT_CHANNELS]);
}

static uint32_t work(uint32_t value)
{
    if (value == 0) {
        return 0;
    }
    if (chip.fault == UACCEL_FAULT_ERROR) {
        return DONE | FAILED;
    }
    if (!is_possible()) {
        return DONE | IMPOSSIBLE;
    }
    if (!do_tensors_fit()) {
        return DONE | REFUSED;
    }
    for (uint32_t i = 0; i < LINE + LARGEST_KERNEL; ++i) {
        line_of_input[i] = 0; /* the padding; loads leave it alone */
    }
    const uint32_t a_line = reg[REG_IN_CHANNELS] * reg[REG_KERNEL_HEIGHT] * reg[REG_KERNEL_WIDTH] * reg[REG_WIDTH];
    reg[REG_CYCLES] = START_UP;
    for (uint32_t line = 0; line < reg[REG_OUT_CHANNELS] * reg[REG_HEIGHT]; ++line) {
        if (!compute_line(line / reg[REG_HEIGHT], line % reg[REG_HEIGHT])) {
            return DONE | REFUSED;
        }
        reg[REG_CYCLES] += a_line;
    }
    chip.busy += reg[REG_CYCLES];
    return DONE;
}

extern const struct uaccel_device_model vanilla_device;
const struct uaccel_device_model vanilla_device = UACCEL_REGISTERS_MODEL("vanilla", chip, REG_START, REGS);
