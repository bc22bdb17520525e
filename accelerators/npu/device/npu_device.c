/* The machine from outside: its registers, and a job from its start to its interrupt. */
#include "npu_device.h"

#define IDENTITY 0x4E505531u /* "NPU1" */
#define VERSION 0x00010000u
#define NOBODY 0xFFFFFFFFu

enum {
    IDENTITY_AT = 0x00,
    VERSION_AT = 0x04,
    CONFIG_AT = 0x08,
    ACTIVATION_BYTES_AT = 0x0C,
    WEIGHT_BYTES_AT = 0x10,
    SUM_BYTES_AT = 0x14,
    CONTROL_AT = 0x18,
    STATUS_AT = 0x1C,
    ERROR_AT = 0x20,
    ERROR_COMMAND_AT = 0x24,
    COMMANDS_AT = 0x28,
    LENGTH_AT = 0x2C,
    CYCLES_AT = 0x30,
    CYCLES_HIGH_AT = 0x34,
    BUSY_LOAD_AT = 0x38,
    BUSY_COMPUTE_AT = 0x3C,
    BUSY_STORE_AT = 0x40,
    INTERRUPT_AT = 0x44,
    PLACE_AT = 0x48,
    BASE_AT = 0x4C,
    LIMIT_AT = 0x50,
    WINDOW = 0x54
};

enum { START = 1, RESET = 2 };
enum { DONE = 1, FAILED = 2 };
enum { ENABLE = 1, PENDING = 2 };

struct device {
    struct npu_memories memories;
    struct npu_outside outside;
    enum uaccel_device_fault fault;
    uint32_t status, error, error_command, commands, length, interrupt, place, held;
    uint64_t cycles;
    uint64_t busy[NPU_ENGINES];
};

static struct device device;

static void zero(void *memory, uint32_t bytes)
{
    uint8_t *const at = memory;
    for (uint32_t i = 0; i < bytes; ++i) {
        at[i] = 0;
    }
}

static void clear(struct device *npu)
{
    zero(&npu->memories, sizeof npu->memories);
    npu->status = 0;
    npu->error = NPU_OK;
    npu->error_command = NOBODY;
}

static void reset(void *state, const struct uaccel_bus *bus)
{
    struct device *const npu = state;
    zero(npu, sizeof *npu);
    npu->outside.bus = bus;
    clear(npu);
}

static void show_interrupt(const struct device *npu)
{
    const struct uaccel_bus *const bus = npu->outside.bus;
    bus->interrupt(bus->context, npu->interrupt == (ENABLE | PENDING) ? 1 : 0);
}

static enum npu_error run(struct device *npu, struct npu_job *job)
{
    if (npu->fault == UACCEL_FAULT_ERROR) {
        return NPU_BROKEN;
    }
    if (npu->length == 0 || npu->length % 4u != 0) {
        return NPU_STREAM;
    }
    return NPU_SYMBOL(run)(job, &npu->memories, &npu->outside, npu->commands, npu->length);
}

static void start(struct device *npu)
{
    if (npu->fault == UACCEL_FAULT_HANG) {
        return;
    }
    struct npu_job job = {npu->cycles, 0, {0}, NOBODY};
    const enum npu_error error = run(npu, &job);
    npu->status = error == NPU_OK ? DONE : DONE | FAILED;
    npu->error = (uint32_t)error;
    npu->error_command = error == NPU_OK ? NOBODY : job.failed;
    npu->cycles += job.end;
    for (uint32_t i = 0; i < NPU_ENGINES; ++i) {
        npu->busy[i] += job.busy[i];
    }
    npu->interrupt |= PENDING;
    show_interrupt(npu);
}

static uint32_t held_read(struct device *npu)
{
    npu->held = (uint32_t)(npu->cycles >> 32);
    return (uint32_t)npu->cycles;
}

static uint32_t read(void *state, uint32_t offset)
{
    struct device *const npu = state;
    const struct npu_place *const place = &npu->outside.places[npu->place];
    switch (offset) {
    case IDENTITY_AT:
        return IDENTITY;
    case VERSION_AT:
        return npu->fault == UACCEL_FAULT_VERSION ? VERSION + 0x00010000u : VERSION;
    case CONFIG_AT:
        return NPU_ROWS | (uint32_t)NPU_COLUMNS << 8 | (uint32_t)NPU_PORTS << 16 | (uint32_t)NPU_QUEUE << 24;
    case ACTIVATION_BYTES_AT:
        return NPU_ACTIVATION_BYTES;
    case WEIGHT_BYTES_AT:
        return NPU_WEIGHT_BYTES;
    case SUM_BYTES_AT:
        return NPU_SUM_BYTES;
    case STATUS_AT:
        return npu->status;
    case ERROR_AT:
        return npu->error;
    case ERROR_COMMAND_AT:
        return npu->error_command;
    case COMMANDS_AT:
        return npu->commands;
    case LENGTH_AT:
        return npu->length;
    case CYCLES_AT:
        return held_read(npu);
    case CYCLES_HIGH_AT:
        return npu->held;
    case BUSY_LOAD_AT:
    case BUSY_COMPUTE_AT:
    case BUSY_STORE_AT:
        return (uint32_t)npu->busy[(offset - BUSY_LOAD_AT) / 4u];
    case INTERRUPT_AT:
        return npu->interrupt;
    case PLACE_AT:
        return npu->place;
    case BASE_AT:
        return place->base;
    case LIMIT_AT:
        return place->limit;
    default:
        return 0;
    }
}

static void control(struct device *npu, uint32_t value)
{
    if (value == START) {
        start(npu);
    } else if (value == RESET) {
        clear(npu);
        npu->interrupt = 0;
        show_interrupt(npu);
    }
}

static void write(void *state, uint32_t offset, uint32_t value)
{
    struct device *const npu = state;
    struct npu_place *const place = &npu->outside.places[npu->place];
    switch (offset) {
    case CONTROL_AT:
        control(npu, value);
        break;
    case STATUS_AT:
        npu->status = 0;
        break;
    case COMMANDS_AT:
        npu->commands = value;
        break;
    case LENGTH_AT:
        npu->length = value;
        break;
    case INTERRUPT_AT:
        npu->interrupt = (value & ENABLE) | (npu->interrupt & PENDING & ~value);
        show_interrupt(npu);
        break;
    case PLACE_AT:
        npu->place = value % NPU_PLACES;
        break;
    case BASE_AT:
        place->base = value;
        break;
    case LIMIT_AT:
        place->limit = value;
        break;
    default:
        break;
    }
}

static uint64_t cycles(const void *state)
{
    const struct device *const npu = state;
    return npu->cycles;
}

static void inject(void *state, enum uaccel_device_fault fault)
{
    struct device *const npu = state;
    npu->fault = fault;
}

const struct uaccel_device_model NPU_SYMBOL(device) = {NPU_NAME, WINDOW, CONTROL_AT, &device, reset,
                                                       read,     write,  cycles,     inject};
