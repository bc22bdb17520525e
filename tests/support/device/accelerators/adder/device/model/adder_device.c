/* A device for tests: adds a constant to bytes in memory, by DMA. */
#include "uaccel_device.h"

#include <stddef.h>

#define IDENTITY 0x41444452u
#define VERSION_1_0 0x00010000u
#define VERSION_2_0 0x00020000u
#define CHUNK 16u
#define CYCLES_A_JOB 12u

enum { REG_IDENTITY, REG_VERSION, REG_START, REG_STATUS, REG_SOURCE, REG_TARGET, REG_COUNT, REG_VALUE, REG_CYCLES, REGS };
enum { DONE = 1, FAILED = 2, REFUSED = 4 }; /* DONE however a job ends */

static struct {
    const struct uaccel_bus *bus;
    enum uaccel_device_fault fault;
    uint32_t registers[REGS];
} adder;

static void reset(void *state, const struct uaccel_bus *bus)
{
    (void)state;
    for (uint32_t i = 0; i < REGS; ++i) {
        adder.registers[i] = 0;
    }
    adder.registers[REG_IDENTITY] = IDENTITY;
    adder.registers[REG_VERSION] = VERSION_1_0;
    adder.bus = bus;
    adder.fault = UACCEL_FAULT_NONE;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t work(void)
{
    uint8_t bytes[CHUNK];
    const uint32_t count = adder.registers[REG_COUNT];
    for (uint32_t at = 0; at < count; at += CHUNK) {
        const uint32_t size = smaller(CHUNK, count - at);
        if (adder.bus->read(adder.bus->context, adder.registers[REG_SOURCE] + at, bytes, size) != 0) {
            return DONE | REFUSED;
        }
        for (uint32_t i = 0; i < size; ++i) {
            bytes[i] = (uint8_t)((bytes[i] + adder.registers[REG_VALUE]) & 0xFFu);
        }
        if (adder.bus->write(adder.bus->context, adder.registers[REG_TARGET] + at, bytes, size) != 0) {
            return DONE | REFUSED;
        }
        adder.registers[REG_CYCLES] += size;
    }
    adder.registers[REG_CYCLES] += CYCLES_A_JOB;
    return DONE;
}

static uint32_t status_of_a_job(void)
{
    if (adder.fault == UACCEL_FAULT_HANG) {
        return 0;
    }
    return adder.fault == UACCEL_FAULT_ERROR ? DONE | FAILED : work();
}

static uint32_t read_register(void *state, uint32_t offset)
{
    (void)state;
    return adder.registers[offset / 4u];
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    (void)state;
    if (offset / 4u == REG_START) {
        adder.bus->interrupt(adder.bus->context, 0);
        adder.registers[REG_STATUS] = status_of_a_job();
        adder.bus->interrupt(adder.bus->context, adder.registers[REG_STATUS] != 0);
    } else if (offset / 4u >= REG_SOURCE && offset / 4u <= REG_VALUE) {
        adder.registers[offset / 4u] = value;
    }
}

static uint64_t cycles(const void *state)
{
    (void)state;
    return adder.registers[REG_CYCLES];
}

static void inject(void *state, enum uaccel_device_fault fault)
{
    (void)state;
    adder.fault = fault;
    if (fault == UACCEL_FAULT_VERSION) {
        adder.registers[REG_VERSION] = VERSION_2_0;
    }
}

extern const struct uaccel_device_model adder_device;
const struct uaccel_device_model adder_device = {
    .name = "adder",
    .window = 4u * REGS,
    .start = 4u * REG_START,
    .state = &adder,
    .reset = reset,
    .read = read_register,
    .write = write_register,
    .cycles = cycles,
    .inject = inject,
};
