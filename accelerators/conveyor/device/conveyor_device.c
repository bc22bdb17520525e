/* conveyor's registers, and the way through a stream. */
#include "conveyor_device.h"

#include "uaccel_registers.h"

#define IDENTITY 0x434E5659u
#define VERSION_1_0 0x00010000u
#define MAGIC 0x59564E43u /* "CNVY" */
#define FORMAT 1u
#define MOST_COMMANDS 65535u

enum {
    REG_IDENTITY,
    REG_VERSION,
    REG_START,
    REG_STATUS,
    REG_ERROR,
    REG_COMMAND,
    REG_STREAM,
    REG_BYTES,
    REG_PLACE,
    REG_BASE,
    REG_CYCLES,
    REG_CYCLES_HIGH,
    REGS
};

enum { DONE = 1, FAILED = 2 };
enum { HEADER_BYTES = 24, PLACE_BYTES = 8, RECORD_BYTES = 4 * CONVEYOR_RECORD_WORDS, CHECKSUM_BYTES = 4 };
enum { CONVOLVE = 1, ADD = 2, AVERAGE = 3, LARGEST = 4 };

static uint32_t reg[REGS];
static struct conveyor conveyor;

static uint32_t work(uint32_t value);
static void clear(void);
static void written(uint32_t index, uint32_t value);

static struct uaccel_registers registers = {
    .values = reg,
    .count = REGS,
    .identity = IDENTITY,
    .version = VERSION_1_0,
    .first = REG_STREAM,
    .last = REG_BASE,
    .start = REG_START,
    .status = REG_STATUS,
    .work = work,
    .clear = clear,
    .written = written,
};

static void clear(void)
{
    conveyor.bus = registers.bus;
    conveyor.cycles = 0;
    conveyor.place_count = 0;
    for (uint32_t i = 0; i < CONVEYOR_PLACES; ++i) {
        conveyor.places[i] = (struct conveyor_place){CONVEYOR_KINDS, 0, 0};
    }
}

/* Bytes of the stream. */
static enum conveyor_error fetch(const struct conveyor *c, uint64_t offset, uint8_t *to, uint32_t bytes)
{
    const struct conveyor_tensor stream = {c->stream};
    if (offset + bytes > c->stream_bytes || (uint64_t)c->stream + c->stream_bytes > UINT64_C(0x100000000)) {
        return CONVEYOR_BAD_STREAM;
    }
    return conveyor_load(c, stream, offset, to, bytes);
}

/* The header and the places; `count` becomes the number of commands. */
static enum conveyor_error open_stream(struct conveyor *c, uint32_t *count)
{
    uint8_t header[HEADER_BYTES];
    enum conveyor_error error = fetch(c, 0, header, sizeof header);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    const uint32_t places = conveyor_word(header + 12);
    *count = conveyor_word(header + 16);
    if (conveyor_word(header) != MAGIC || conveyor_word(header + 4) != FORMAT || places > CONVEYOR_PLACES ||
        *count > MOST_COMMANDS || conveyor_word(header + 8) != c->stream_bytes ||
        HEADER_BYTES + PLACE_BYTES * places + RECORD_BYTES * *count + CHECKSUM_BYTES != c->stream_bytes) {
        return CONVEYOR_BAD_STREAM;
    }
    c->place_count = places;
    for (uint32_t i = 0; i < places; ++i) {
        uint8_t bytes[PLACE_BYTES];
        error = fetch(c, HEADER_BYTES + PLACE_BYTES * i, bytes, sizeof bytes);
        if (error != CONVEYOR_GOOD) {
            return error;
        }
        c->places[i].kind = conveyor_word(bytes);
        c->places[i].bytes = conveyor_word(bytes + 4);
        if (c->places[i].kind >= CONVEYOR_KINDS) {
            return CONVEYOR_BAD_STREAM;
        }
    }
    return CONVEYOR_GOOD;
}

static enum conveyor_error run_command(struct conveyor *c)
{
    uint8_t bytes[RECORD_BYTES];
    const uint32_t offset = HEADER_BYTES + PLACE_BYTES * c->place_count + RECORD_BYTES * c->command;
    const enum conveyor_error error = fetch(c, offset, bytes, sizeof bytes);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    for (uint32_t i = 0; i < CONVEYOR_RECORD_WORDS; ++i) {
        c->record[i] = conveyor_word(bytes + 4u * i);
    }
    switch (c->record[0]) {
    case CONVOLVE:
        return conveyor_convolve(c);
    case ADD:
        return conveyor_add(c);
    case AVERAGE:
    case LARGEST:
        return conveyor_pool(c, c->record[0] == AVERAGE);
    default:
        return CONVEYOR_BAD_OPERATION;
    }
}

static enum conveyor_error play(struct conveyor *c)
{
    uint32_t count = 0;
    enum conveyor_error error = open_stream(c, &count);
    while (error == CONVEYOR_GOOD && c->command < count) {
        const uint64_t begin = c->cycles;
        error = run_command(c);
        if (c->bus->span != NULL) {
            c->bus->span(c->bus->context, "belt", c->command, begin, c->cycles);
        }
        c->command += error == CONVEYOR_GOOD ? 1u : 0u;
    }
    return error;
}

static uint32_t work(uint32_t value)
{
    struct conveyor *const c = &conveyor;
    (void)value;
    c->stream = reg[REG_STREAM];
    c->stream_bytes = reg[REG_BYTES];
    c->command = 0;
    reg[REG_ERROR] = registers.fault == UACCEL_FAULT_ERROR ? CONVEYOR_BROKEN : play(c);
    reg[REG_COMMAND] = c->command;
    reg[REG_CYCLES] = (uint32_t)(c->cycles & UINT32_MAX);
    reg[REG_CYCLES_HIGH] = (uint32_t)(c->cycles >> 32);
    registers.busy = c->cycles;
    return reg[REG_ERROR] == CONVEYOR_GOOD ? DONE : DONE | FAILED;
}

/* One register tells the base of the place that another one names. */
static void written(uint32_t index, uint32_t value)
{
    const uint32_t place = reg[REG_PLACE];
    if (index == REG_BASE && place < CONVEYOR_PLACES) {
        conveyor.places[place].base = value;
    }
    reg[REG_BASE] = place < CONVEYOR_PLACES ? conveyor.places[place].base : 0;
    if (index == REG_START || index == REG_STATUS) {
        const bool raised = index == REG_START && reg[REG_STATUS] != 0;
        registers.bus->interrupt(registers.bus->context, raised ? 1 : 0);
    }
}

extern const struct uaccel_device_model conveyor_device;
const struct uaccel_device_model conveyor_device = UACCEL_REGISTERS_MODEL("conveyor", registers, REG_START, REGS);
