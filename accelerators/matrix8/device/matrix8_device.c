/* matrix8's registers. Commands are done when they are given; only their time is kept as if they waited in queues. */
#include "matrix8_model.h"

#include <stddef.h>
#include <string.h>

#define IDENTITY 0x4D545838u
#define VERSION_1_0 0x00010000u
#define VERSION_2_0 0x00020000u

enum {
    REG_IDENTITY = 0x00,
    REG_VERSION = 0x04,
    REG_STATUS = 0x08,
    REG_ERROR = 0x0C,
    REG_ERROR_AT = 0x10,
    REG_COMMAND = 0x14,
    REG_CONTROL = 0x18,
    REG_COMMANDS = 0x1C,
    REG_CYCLES = 0x20,
    REG_BUSY = 0x24,
    REG_ARGUMENT = 0x40,
    REG_WINDOW = 0x60,
    REG_OUTPUT = 0x7C,
    REG_END = 0x88
};

enum { BUSY = 1, FULL = 2, FAILED = 4 };
enum { CLEAR = 1 };

static uint8_t activations[MATRIX8_ACTIVATION_BYTES];
static uint8_t weights[MATRIX8_WEIGHT_BYTES];
static uint8_t accumulators[MATRIX8_ACCUMULATOR_BYTES];
static uint8_t parameters[MATRIX8_PARAMETER_BYTES];

static struct {
    struct matrix8_chip chip;
    struct matrix8_time time;
    struct matrix8_command next; /* the arguments as they are now */
    enum uaccel_device_fault fault;
    uint32_t version;
    uint32_t error;
    uint32_t error_at;
    uint32_t commands;
    uint64_t before; /* cycles until the last clearing */
} matrix8;

static void clear(void)
{
    matrix8.before += matrix8_model_elapsed(&matrix8.time);
    memset(&matrix8.time, 0, sizeof matrix8.time);
    matrix8.error = MATRIX8_ERROR_NONE;
    matrix8.error_at = 0;
    matrix8.commands = 0;
}

static void reset(void *state, const struct uaccel_bus *bus)
{
    (void)state;
    memset(&matrix8, 0, sizeof matrix8);
    matrix8.chip.memory[MATRIX8_ACTIVATIONS] = activations;
    matrix8.chip.memory[MATRIX8_WEIGHTS] = weights;
    matrix8.chip.memory[MATRIX8_ACCUMULATORS] = accumulators;
    matrix8.chip.memory[MATRIX8_PARAMETERS] = parameters;
    matrix8.chip.bus = bus;
    matrix8.version = VERSION_1_0;
}

static uint32_t status(void)
{
    if (matrix8.fault == UACCEL_FAULT_HANG) {
        return BUSY | FULL;
    }
    return matrix8.error != MATRIX8_ERROR_NONE ? FAILED : 0;
}

/* The low words of the counters. */
static uint32_t counter(uint32_t offset)
{
    switch (offset) {
    case REG_COMMANDS:
        return matrix8.commands;
    case REG_CYCLES:
        return (uint32_t)matrix8_model_elapsed(&matrix8.time);
    default:
        return (uint32_t)matrix8.time.busy[(offset - REG_BUSY) / 4u];
    }
}

/* The register that is read back as it was written; NULL: there is none. */
static uint32_t *plain(uint32_t offset)
{
    uint32_t *const window[] = {&matrix8.next.window.kernel_rows,         &matrix8.next.window.kernel_columns,
                                &matrix8.next.window.run,                 &matrix8.next.window.kernel_row_pitch,
                                &matrix8.next.window.kernel_column_pitch, &matrix8.next.window.row_pitch,
                                &matrix8.next.window.column_pitch};
    uint32_t *const output[] = {&matrix8.next.output.zero_point, &matrix8.next.output.clamp_min,
                                &matrix8.next.output.clamp_max};
    if (offset >= REG_ARGUMENT && offset < REG_WINDOW) {
        return &matrix8.next.arguments[(offset - REG_ARGUMENT) / 4u];
    }
    if (offset >= REG_WINDOW && offset < REG_OUTPUT) {
        return window[(offset - REG_WINDOW) / 4u];
    }
    return offset >= REG_OUTPUT && offset < REG_END ? output[(offset - REG_OUTPUT) / 4u] : NULL;
}

static uint32_t read_register(void *state, uint32_t offset)
{
    const uint32_t *const kept = plain(offset);
    (void)state;
    switch (offset) {
    case REG_IDENTITY:
        return IDENTITY;
    case REG_VERSION:
        return matrix8.version;
    case REG_STATUS:
        return status();
    case REG_ERROR:
        return matrix8.error;
    case REG_ERROR_AT:
        return matrix8.error_at;
    default:
        if (offset >= REG_COMMANDS && offset < REG_BUSY + 4u * MATRIX8_ENGINES) {
            return counter(offset);
        }
        return kept != NULL ? *kept : 0;
    }
}

/* After an error nothing is done until it is cleared. */
static void take_command(uint32_t what)
{
    struct matrix8_work work;
    if (matrix8.fault == UACCEL_FAULT_HANG || matrix8.error != MATRIX8_ERROR_NONE) {
        return;
    }
    matrix8.next.what = what;
    matrix8.error = matrix8.fault == UACCEL_FAULT_ERROR
                        ? (uint32_t)MATRIX8_ERROR_INTERNAL
                        : matrix8_model_do(&matrix8.chip, &matrix8.next, &work);
    if (matrix8.error != MATRIX8_ERROR_NONE) {
        matrix8.error_at = matrix8.commands;
        return;
    }
    matrix8_model_spend(&matrix8.time, &work);
    matrix8.commands++;
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    uint32_t *const kept = plain(offset);
    (void)state;
    if (kept != NULL) {
        *kept = value;
    } else if (offset == REG_COMMAND) {
        take_command(value);
    } else if (offset == REG_CONTROL && (value & CLEAR) != 0) {
        clear();
    }
}

static uint64_t cycles(const void *state)
{
    (void)state;
    return matrix8.before + matrix8_model_elapsed(&matrix8.time);
}

static void inject(void *state, enum uaccel_device_fault fault)
{
    (void)state;
    matrix8.fault = fault;
    if (fault == UACCEL_FAULT_VERSION) {
        matrix8.version = VERSION_2_0;
    }
}

extern const struct uaccel_device_model matrix8_device;
const struct uaccel_device_model matrix8_device = {
    .name = "matrix8",
    .window = REG_END,
    .start = REG_COMMAND,
    .state = &matrix8,
    .reset = reset,
    .read = read_register,
    .write = write_register,
    .cycles = cycles,
    .inject = inject,
};
