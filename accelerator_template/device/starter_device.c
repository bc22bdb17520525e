/* What stands in for the hardware until there is some: the registers as the driver uses them, and what they do.
 *
 * A model is functional: the register write that starts a job does all of it. It reaches memory over the bus alone, so
 * that the same source runs in a process of this computer, behind an emulated board, and in a simulator of yours. */
#include <stdbool.h>

#include "uaccel_registers.h"

#define IDENTITY 0x53544152u
#define VERSION 1u

enum { LARGEST = 1024, START_UP = 50 };

/* 32 bits each, one after the other from offset 0 on. */
enum { REG_IDENTITY, REG_VERSION, REG_START, REG_STATUS, REG_X, REG_WEIGHTS, REG_SUMS, REG_ROWS, REG_DEPTH, REG_UNITS,
       REG_CYCLES, REGS };

enum { DONE = 1, FAILED = 2, REFUSED = 4 };

static uint32_t reg[REGS];
static int8_t row_of_x[LARGEST];
static int8_t row_of_weights[LARGEST];

static uint32_t work(uint32_t value);

/* Reset, reads, writes and faults are uaccel_registers.h's. */
static struct uaccel_registers chip = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION,
    .first = REG_X,
    .last = REG_UNITS,
    .start = REG_START,
    .status = REG_STATUS,
    .work = work,
};

static bool load(int8_t *to, uint32_t tensor, uint32_t line)
{
    const uint32_t depth = reg[REG_DEPTH];
    return chip.bus->read(chip.bus->context, reg[tensor] + line * depth, to, depth) == 0;
}

static bool store_sum(uint32_t index)
{
    uint32_t sum = 0; /* wraps, as adders do */
    for (uint32_t i = 0; i < reg[REG_DEPTH]; ++i) {
        sum += (uint32_t)(row_of_x[i] * row_of_weights[i]);
    }
    return chip.bus->write(chip.bus->context, reg[REG_SUMS] + 4u * index, &sum, sizeof sum) == 0;
}

/* The whole job; returns the status after it. What can be wrong with hardware is there on demand:
 * UACCEL_DEVICE_FAULT=starter:error uaccel run ... */
static uint32_t work(uint32_t value)
{
    const uint32_t rows = reg[REG_ROWS];
    const uint32_t depth = reg[REG_DEPTH];
    const uint32_t units = reg[REG_UNITS];
    if (value == 0) {
        return 0;
    }
    if (chip.fault == UACCEL_FAULT_ERROR || rows > LARGEST || depth > LARGEST || units > LARGEST) {
        return DONE | FAILED;
    }
    for (uint32_t row = 0; row < rows; ++row) {
        if (!load(row_of_x, REG_X, row)) {
            return DONE | REFUSED;
        }
        for (uint32_t unit = 0; unit < units; ++unit) {
            if (!load(row_of_weights, REG_WEIGHTS, unit) || !store_sum(row * units + unit)) {
                return DONE | REFUSED;
            }
        }
    }
    reg[REG_CYCLES] = START_UP + rows * depth * units;
    chip.busy += reg[REG_CYCLES];
    return DONE;
}

extern const struct uaccel_device_model starter_device;
const struct uaccel_device_model starter_device = UACCEL_REGISTERS_MODEL("starter", chip, REG_START, REGS);
