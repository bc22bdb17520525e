/* Stands in for the hardware: the registers, and what a start does. It reaches memory by the bus alone. */
#include "uaccel_registers.h"

#define IDENTITY 0x4C4F4F4Bu
#define VERSION 1u

enum { ENTRIES = 256, LARGEST = 65536, START_UP = 20, BUS_BYTES = 4 };

enum {
    REG_IDENTITY,
    REG_VERSION,
    REG_START,
    REG_STATUS,
    REG_X,
    REG_TABLE,
    REG_Y,
    REG_BYTES,
    REG_CYCLES,
    REGS
};

enum { DONE = 1, FAILED = 2, REFUSED = 4 };

static uint32_t reg[REGS];
static uint8_t table[ENTRIES];

static uint32_t work(uint32_t value);

/* Reset, reads, writes and faults are uaccel_registers.h's. */
static struct uaccel_registers chip = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION,
    .first = REG_X,
    .last = REG_BYTES,
    .start = REG_START,
    .status = REG_STATUS,
    .work = work,
};

/* A whole job; the value is the status after it. */
static uint32_t work(uint32_t value)
{
    const struct uaccel_bus *const bus = chip.bus;
    uint8_t word[BUS_BYTES];
    if (value == 0) {
        return 0;
    }
    if (chip.fault == UACCEL_FAULT_ERROR || reg[REG_BYTES] > LARGEST) {
        return DONE | FAILED;
    }
    reg[REG_CYCLES] = START_UP + ENTRIES / BUS_BYTES;
    if (bus->read(bus->context, reg[REG_TABLE], table, ENTRIES) != 0) {
        return DONE | REFUSED;
    }
    for (uint32_t at = 0; at < reg[REG_BYTES]; at += BUS_BYTES) {
        const uint32_t rest = reg[REG_BYTES] - at;
        const uint32_t count = rest < BUS_BYTES ? rest : BUS_BYTES;
        if (bus->read(bus->context, reg[REG_X] + at, word, count) != 0) {
            return DONE | REFUSED;
        }
        for (uint32_t i = 0; i < count; ++i) {
            word[i] = table[word[i]];
        }
        if (bus->write(bus->context, reg[REG_Y] + at, word, count) != 0) {
            return DONE | REFUSED;
        }
        reg[REG_CYCLES] += 2;
    }
    chip.busy += reg[REG_CYCLES];
    return DONE;
}

extern const struct uaccel_device_model lookup_unit_device;
const struct uaccel_device_model lookup_unit_device =
    UACCEL_REGISTERS_MODEL("lookup_unit", chip, REG_START, REGS);
