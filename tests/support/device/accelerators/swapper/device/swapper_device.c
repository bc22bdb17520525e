/* Another device for tests, beside the adder: exchanges the halves of a register. */
#include "uaccel_device.h"

static uint32_t kept;

static void reset(void *state, const struct uaccel_bus *bus)
{
    (void)state;
    (void)bus;
    kept = 0;
}

static uint32_t read_register(void *state, uint32_t offset)
{
    (void)state;
    (void)offset;
    return kept;
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    (void)state;
    (void)offset;
    kept = value << 16 | value >> 16;
}

static uint64_t cycles(const void *state)
{
    (void)state;
    return 0;
}

extern const struct uaccel_device_model swapper_device;
const struct uaccel_device_model swapper_device = {
    .name = "swapper",
    .window = 4,
    .start = 0,
    .reset = reset,
    .read = read_register,
    .write = write_register,
    .cycles = cycles,
};
