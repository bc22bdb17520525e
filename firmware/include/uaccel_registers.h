/* The registers of a device's model: what all devices do alike that are a file of 32-bit registers.
 *
 * A model states a `struct uaccel_registers` and what a start does; reset, reads, writes, cycles and faults are here.
 * Registers 0 and 1 are identity and version. All offsets of uaccel_device.h are four times an index here. */
#ifndef UACCEL_REGISTERS_H
#define UACCEL_REGISTERS_H

#include <stddef.h>

#include "uaccel_device.h"

struct uaccel_registers {
    /* What the model states. */
    uint32_t *values; /* of all registers: the model reads them, and sets those that the device sets */
    uint32_t count;
    uint32_t identity, version;
    uint32_t first, last;             /* the driver's: they keep what is written to them; others only change as told below */
    uint32_t start, status;           /* a write to the first is a job, the second says how it ended */
    uint32_t (*work)(uint32_t value); /* the whole of a job; returns the status after it. `value` is what was written */
    void (*clear)(void);              /* what else a reset forgets, or NULL */
    /* After a write, whatever the register: for those that mean more than their value, and for the interrupt line. NULL:
     * none does, and the line follows the status. */
    void (*written)(uint32_t index, uint32_t value);

    /* What is kept here. */
    const struct uaccel_bus *bus;
    enum uaccel_device_fault fault; /* `work` sees to UACCEL_FAULT_ERROR */
    uint64_t busy;                  /* cycles since the reset: `work` adds to them */
};

static inline void uaccel_registers_reset(void *state, const struct uaccel_bus *bus)
{
    struct uaccel_registers *const registers = state;
    for (uint32_t i = 0; i < registers->count; ++i) {
        registers->values[i] = 0;
    }
    registers->values[0] = registers->identity;
    registers->values[1] = registers->version;
    registers->bus = bus;
    registers->fault = UACCEL_FAULT_NONE;
    registers->busy = 0;
    if (registers->clear != NULL) {
        registers->clear();
    }
}

static inline uint32_t uaccel_registers_read(void *state, uint32_t offset)
{
    const struct uaccel_registers *const registers = state;
    return registers->values[offset / 4u];
}

static inline void uaccel_registers_write(void *state, uint32_t offset, uint32_t value)
{
    struct uaccel_registers *const registers = state;
    const uint32_t index = offset / 4u;
    if (index == registers->start) {
        registers->values[registers->status] = registers->fault == UACCEL_FAULT_HANG ? 0 : registers->work(value);
        if (registers->written == NULL) {
            registers->bus->interrupt(registers->bus->context, registers->values[registers->status] != 0);
        }
    } else if (index >= registers->first && index <= registers->last) {
        registers->values[index] = value;
    }
    if (registers->written != NULL) {
        registers->written(index, value);
    }
}

static inline uint64_t uaccel_registers_cycles(const void *state)
{
    const struct uaccel_registers *const registers = state;
    return registers->busy;
}

static inline void uaccel_registers_inject(void *state, enum uaccel_device_fault fault)
{
    struct uaccel_registers *const registers = state;
    registers->fault = fault;
    if (fault == UACCEL_FAULT_VERSION) {
        registers->values[1] = registers->version + 0x00010000u;
    }
}

/* The initial value of a `struct uaccel_device_model`. */
#define UACCEL_REGISTERS_MODEL(NAME, REGISTERS, START, COUNT) \
    {.name = (NAME), \
     .window = 4u * (COUNT), \
     .start = 4u * (START), \
     .state = &(REGISTERS), \
     .reset = uaccel_registers_reset, \
     .read = uaccel_registers_read, \
     .write = uaccel_registers_write, \
     .cycles = uaccel_registers_cycles, \
     .inject = uaccel_registers_inject}

#endif
