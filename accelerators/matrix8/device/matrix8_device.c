/* matrix8's registers. Commands are done when they are given; only their time is kept as if they waited in queues. */
#include "matrix8_model.h"

#include <string.h>

#include "uaccel_registers.h"

#define IDENTITY 0x4D545838u
#define VERSION_1_1 0x00010001u

enum {
    REG_IDENTITY,
    REG_VERSION,
    REG_STATUS,
    REG_ERROR,
    REG_ERROR_AT,
    REG_COMMAND,
    REG_CONTROL,
    REG_COMMANDS,
    REG_CYCLES,
    REG_BUSY,
    REG_ARGUMENT = 16,
    REG_WINDOW = 24,
    REG_OUTPUT = 31,
    REGS = 35
};

enum { BUSY = 1, FULL = 2, FAILED = 4 };
enum { CLEAR = 1 };

static uint32_t reg[REGS];
static uint8_t activations[MATRIX8_ACTIVATION_BYTES];
static uint8_t weights[MATRIX8_WEIGHT_BYTES];
static uint8_t accumulators[MATRIX8_ACCUMULATOR_BYTES];
static uint8_t parameters[MATRIX8_PARAMETER_BYTES];
static struct matrix8_time spent;
static uint64_t before; /* cycles until the last clearing */

static void clear(void);
static uint32_t work(uint32_t what);
static void written(uint32_t index, uint32_t value);

static struct uaccel_registers registers = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION_1_1,
    .first = REG_ARGUMENT,
    .last = REGS - 1,
    .start = REG_COMMAND,
    .status = REG_STATUS,
    .work = work,
    .clear = clear,
    .written = written,
};

static void clear(void)
{
    memset(&spent, 0, sizeof spent);
    before = registers.busy;
}

/* Does a command and counts it, or says what is wrong with it. */
static uint32_t take(const struct matrix8_command *command)
{
    struct matrix8_chip chip = {registers.bus, {activations, weights, accumulators, parameters}};
    struct matrix8_work done;
    if (registers.fault == UACCEL_FAULT_ERROR) {
        return MATRIX8_ERROR_INTERNAL;
    }
    const uint32_t error = matrix8_model_do(&chip, command, &done);
    if (error == MATRIX8_ERROR_NONE) {
        matrix8_model_spend(&spent, &done);
    }
    return error;
}

/* After an error nothing is done until it is cleared. */
static uint32_t work(uint32_t what)
{
    struct matrix8_command command = {.what = what};
    if (reg[REG_ERROR] != MATRIX8_ERROR_NONE) {
        return FAILED;
    }
    memcpy(command.arguments, reg + REG_ARGUMENT, sizeof command.arguments);
    memcpy(&command.window, reg + REG_WINDOW, sizeof command.window);
    memcpy(&command.output, reg + REG_OUTPUT, sizeof command.output);
    reg[REG_ERROR] = take(&command);
    if (reg[REG_ERROR] != MATRIX8_ERROR_NONE) {
        reg[REG_ERROR_AT] = reg[REG_COMMANDS];
        return FAILED;
    }
    reg[REG_COMMANDS]++;
    return 0;
}

static void written(uint32_t index, uint32_t value)
{
    if (index == REG_CONTROL && (value & CLEAR) != 0) {
        clear();
        reg[REG_STATUS] = reg[REG_ERROR] = reg[REG_ERROR_AT] = reg[REG_COMMANDS] = 0;
    }
    if (registers.fault == UACCEL_FAULT_HANG) {
        reg[REG_STATUS] = BUSY | FULL;
    }
    reg[REG_CYCLES] = (uint32_t)matrix8_model_elapsed(&spent);
    for (uint32_t engine = 0; engine < MATRIX8_ENGINES; ++engine) {
        reg[REG_BUSY + engine] = (uint32_t)spent.busy[engine];
    }
    registers.busy = before + matrix8_model_elapsed(&spent);
}

extern const struct uaccel_device_model matrix8_device;
const struct uaccel_device_model matrix8_device = UACCEL_REGISTERS_MODEL("matrix8", registers, REG_COMMAND, REGS);
