/* The machine from outside: its registers, and a job from its start to its interrupt. */
#include "npu_device.h"

#include "uaccel_registers.h"

#define IDENTITY 0x4E505531u /* "NPU1" */
#define VERSION 0x00010002u
#define NOBODY 0xFFFFFFFFu

enum {
    REG_IDENTITY,
    REG_VERSION,
    REG_CONFIG,
    REG_ACTIVATION_BYTES,
    REG_WEIGHT_BYTES,
    REG_SUM_BYTES,
    REG_CONTROL,
    REG_STATUS,
    REG_ERROR,
    REG_ERROR_COMMAND,
    REG_COMMANDS,
    REG_LENGTH,
    REG_CYCLES,
    REG_CYCLES_HIGH,
    REG_BUSY_LOAD,
    REG_BUSY_COMPUTE,
    REG_BUSY_STORE,
    REG_INTERRUPT,
    REG_PLACE,
    REG_BASE,
    REG_LIMIT,
    REGS
};

enum { START = 1, RESET = 2 };
enum { DONE = 1, FAILED = 2 };
enum { ENABLE = 1, PENDING = 2 };

static uint32_t reg[REGS];
static struct npu_memories memories;
static struct npu_outside outside;

static void clear(void);
static uint32_t work(uint32_t value);
static void written(uint32_t index, uint32_t value);

static struct uaccel_registers registers = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION,
    .first = REG_COMMANDS,
    .last = REG_LENGTH,
    .start = REG_CONTROL,
    .status = REG_STATUS,
    .work = work,
    .clear = clear,
    .written = written,
};

static void zero(void *memory, uint32_t bytes)
{
    uint8_t *const at = memory;
    for (uint32_t i = 0; i < bytes; ++i) {
        at[i] = 0;
    }
}

/* What a job left; counters and places stay. */
static void forget(void)
{
    zero(&memories, sizeof memories);
    reg[REG_ERROR] = NPU_OK;
    reg[REG_ERROR_COMMAND] = NOBODY;
    reg[REG_INTERRUPT] = 0;
}

static void clear(void)
{
    zero(&outside, sizeof outside);
    outside.bus = registers.bus;
    reg[REG_CONFIG] =
        NPU_ROWS | (uint32_t)NPU_COLUMNS << 8 | (uint32_t)NPU_PORTS << 16 | (uint32_t)NPU_QUEUE << 24;
    reg[REG_ACTIVATION_BYTES] = NPU_ACTIVATION_BYTES;
    reg[REG_WEIGHT_BYTES] = NPU_WEIGHT_BYTES;
    reg[REG_SUM_BYTES] = NPU_SUM_BYTES;
    forget();
}

static enum npu_error run(struct npu_job *job)
{
    if (registers.fault == UACCEL_FAULT_ERROR) {
        return NPU_BROKEN;
    }
    if (reg[REG_LENGTH] == 0 || reg[REG_LENGTH] % 4u != 0) {
        return NPU_STREAM;
    }
    return NPU_SYMBOL(run)(job, &memories, &outside, reg[REG_COMMANDS], reg[REG_LENGTH]);
}

static uint32_t work(uint32_t value)
{
    if (value == RESET) {
        forget();
        return 0;
    }
    if (value != START) {
        return reg[REG_STATUS];
    }
    struct npu_job job = {registers.busy, 0, {0}, NOBODY};
    const enum npu_error error = run(&job);
    reg[REG_ERROR] = (uint32_t)error;
    reg[REG_ERROR_COMMAND] = error == NPU_OK ? NOBODY : job.failed;
    registers.busy += job.end;
    reg[REG_CYCLES] = (uint32_t)registers.busy;
    reg[REG_CYCLES_HIGH] = (uint32_t)(registers.busy >> 32);
    for (uint32_t i = 0; i < NPU_ENGINES; ++i) {
        reg[REG_BUSY_LOAD + i] += (uint32_t)job.busy[i];
    }
    reg[REG_INTERRUPT] |= PENDING;
    return error == NPU_OK ? DONE : DONE | FAILED;
}

static void written(uint32_t index, uint32_t value)
{
    struct npu_place *const place = &outside.places[index == REG_PLACE ? value % NPU_PLACES : reg[REG_PLACE]];
    switch (index) {
    case REG_STATUS:
        reg[REG_STATUS] = 0;
        break;
    case REG_INTERRUPT:
        reg[REG_INTERRUPT] = (value & ENABLE) | (reg[REG_INTERRUPT] & PENDING & ~value);
        break;
    case REG_PLACE:
        reg[REG_PLACE] = value % NPU_PLACES;
        break;
    case REG_BASE:
        place->base = value;
        break;
    case REG_LIMIT:
        place->limit = value;
        break;
    default:
        break;
    }
    reg[REG_BASE] = place->base;
    reg[REG_LIMIT] = place->limit;
    registers.bus->interrupt(registers.bus->context, reg[REG_INTERRUPT] == (ENABLE | PENDING) ? 1 : 0);
}

const struct uaccel_device_model NPU_SYMBOL(device) =
    UACCEL_REGISTERS_MODEL(NPU_NAME, registers, REG_CONTROL, REGS);
