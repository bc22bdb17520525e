/* A rack of device models as a library for a machine that is simulated. */
#include <stddef.h>

#include "machine_devices.h"
#include "rack.h"

static bool begin(const struct uaccel_bus *memory)
{
    return uaccel_rack_environment() && uaccel_rack_begin(memory);
}

static uint32_t count(void)
{
    return uaccel_rack_count;
}

static uint32_t read_register(uint32_t device, uint32_t offset)
{
    return uaccel_rack_read(&uaccel_rack[device], offset);
}

static void write_register(uint32_t device, uint32_t offset, uint32_t value)
{
    uaccel_rack_write(&uaccel_rack[device], offset, value);
}

static uint64_t cycles(uint32_t device)
{
    const struct uaccel_device_model *const model = uaccel_rack[device].model;
    const uint64_t own = model->clock == 0 ? 1 : model->clock;
    const uint64_t cpu = model->cpu_clock == 0 ? 1 : model->cpu_clock;
    return model->tick != NULL ? 0 : model->cycles(model->state) * cpu / own;
}

extern const struct uaccel_machine_devices uaccel_machine_devices;
__attribute__((visibility("default"))) const struct uaccel_machine_devices uaccel_machine_devices = {
    begin, uaccel_rack_reset, uaccel_rack_end, uaccel_rack_pass, uaccel_rack_layer,
    count, read_register,     write_register,  cycles,
};
