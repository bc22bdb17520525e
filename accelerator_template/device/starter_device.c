/* What stands in for the hardware until there is some: the registers as the driver uses them, and what they do.
 *
 * A model is functional: the register write that starts a job does all of it. It reaches memory over the bus alone, so
 * that the same source runs in a process of this computer, behind an emulated board, and in a simulator of yours. */
#include <stdbool.h>
#include <stddef.h>

#include "uaccel_device.h"

#define IDENTITY 0x53544152u
#define VERSION 1u

enum { LARGEST = 1024, START_UP = 50 };

/* 32 bits each, one after the other from offset 0 on. */
enum { REG_IDENTITY, REG_VERSION, REG_START, REG_STATUS, REG_X, REG_WEIGHTS, REG_SUMS, REG_ROWS, REG_DEPTH, REG_UNITS,
       REG_CYCLES, REGS };

enum { DONE = 1, FAILED = 2, REFUSED = 4 };

static struct {
    const struct uaccel_bus *bus;
    enum uaccel_device_fault fault;
    uint32_t registers[REGS];
    uint64_t busy; /* cycles since the reset */
    int8_t row[LARGEST];
    int8_t weights[LARGEST];
} chip;

static bool load(int8_t *to, uint32_t tensor, uint32_t line)
{
    const uint32_t depth = chip.registers[REG_DEPTH];
    return chip.bus->read(chip.bus->context, chip.registers[tensor] + line * depth, to, depth) == 0;
}

static bool store_sum(uint32_t index)
{
    uint32_t sum = 0; /* wraps, as adders do */
    for (uint32_t i = 0; i < chip.registers[REG_DEPTH]; ++i) {
        sum += (uint32_t)(chip.row[i] * chip.weights[i]);
    }
    return chip.bus->write(chip.bus->context, chip.registers[REG_SUMS] + 4u * index, &sum, sizeof sum) == 0;
}

/* The whole job; returns the status after it. */
static uint32_t work(void)
{
    const uint32_t rows = chip.registers[REG_ROWS];
    const uint32_t depth = chip.registers[REG_DEPTH];
    const uint32_t units = chip.registers[REG_UNITS];
    if (chip.fault == UACCEL_FAULT_ERROR || rows > LARGEST || depth > LARGEST || units > LARGEST) {
        return DONE | FAILED;
    }
    for (uint32_t row = 0; row < rows; ++row) {
        if (!load(chip.row, REG_X, row)) {
            return DONE | REFUSED;
        }
        for (uint32_t unit = 0; unit < units; ++unit) {
            if (!load(chip.weights, REG_WEIGHTS, unit) || !store_sum(row * units + unit)) {
                return DONE | REFUSED;
            }
        }
    }
    chip.registers[REG_CYCLES] = START_UP + rows * depth * units;
    chip.busy += chip.registers[REG_CYCLES];
    return DONE;
}

static void reset(void *state, const struct uaccel_bus *bus)
{
    (void)state;
    for (uint32_t i = 0; i < REGS; ++i) {
        chip.registers[i] = 0;
    }
    chip.registers[REG_IDENTITY] = IDENTITY;
    chip.registers[REG_VERSION] = VERSION;
    chip.bus = bus;
    chip.fault = UACCEL_FAULT_NONE;
    chip.busy = 0;
}

static uint32_t read_register(void *state, uint32_t offset)
{
    (void)state;
    return chip.registers[offset / 4u];
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    const uint32_t index = offset / 4u;
    (void)state;
    if (index == REG_START) {
        chip.registers[REG_STATUS] = value == 0 || chip.fault == UACCEL_FAULT_HANG ? 0 : work();
        chip.bus->interrupt(chip.bus->context, chip.registers[REG_STATUS] != 0);
    } else if (index >= REG_X && index <= REG_UNITS) {
        chip.registers[index] = value;
    }
}

static uint64_t cycles(const void *state)
{
    (void)state;
    return chip.busy;
}

/* What can be wrong with hardware, on demand: UACCEL_DEVICE_FAULT=starter:hang uaccel run ... */
static void inject(void *state, enum uaccel_device_fault fault)
{
    (void)state;
    chip.fault = fault;
    if (fault == UACCEL_FAULT_VERSION) {
        chip.registers[REG_VERSION] = VERSION + 1u;
    }
}

extern const struct uaccel_device_model starter_device;
const struct uaccel_device_model starter_device = {
    .name = "starter",
    .window = 4u * REGS,
    .start = 4u * REG_START,
    .state = &chip,
    .reset = reset,
    .read = read_register,
    .write = write_register,
    .cycles = cycles,
    .inject = inject,
};
