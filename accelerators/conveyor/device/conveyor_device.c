/* conveyor's registers, and the way through a stream. */
#include "conveyor_device.h"

#include <stddef.h>

#define IDENTITY 0x434E5659u
#define VERSION_1_0 0x00010000u
#define VERSION_2_0 0x00020000u
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

static struct conveyor conveyor;

static void reset(void *state, const struct uaccel_bus *bus)
{
    struct conveyor *const c = state;
    c->bus = bus;
    c->fault = UACCEL_FAULT_NONE;
    c->cycles = 0;
    c->cycles_high = 0;
    c->version = VERSION_1_0;
    c->status = 0;
    c->error = CONVEYOR_GOOD;
    c->command = 0;
    c->stream = 0;
    c->stream_bytes = 0;
    c->place = 0;
    c->place_count = 0;
    for (uint32_t i = 0; i < CONVEYOR_PLACES; ++i) {
        c->places[i].kind = CONVEYOR_KINDS;
        c->places[i].bytes = 0;
        c->places[i].base = 0;
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

static void start(struct conveyor *c)
{
    c->bus->interrupt(c->bus->context, 0);
    c->status = 0;
    c->command = 0;
    c->error = CONVEYOR_GOOD;
    if (c->fault != UACCEL_FAULT_HANG) {
        c->error = c->fault == UACCEL_FAULT_ERROR ? CONVEYOR_BROKEN : play(c);
        c->status = c->error == CONVEYOR_GOOD ? DONE : DONE | FAILED;
        c->bus->interrupt(c->bus->context, 1);
    }
}

static uint32_t read_cycles(struct conveyor *c)
{
    c->cycles_high = (uint32_t)(c->cycles >> 32);
    return (uint32_t)(c->cycles & UINT32_MAX);
}

static uint32_t read_register(void *state, uint32_t offset)
{
    struct conveyor *const c = state;
    switch (offset / 4u) {
    case REG_IDENTITY:
        return IDENTITY;
    case REG_VERSION:
        return c->version;
    case REG_STATUS:
        return c->status;
    case REG_ERROR:
        return c->error;
    case REG_COMMAND:
        return c->command;
    case REG_STREAM:
        return c->stream;
    case REG_BYTES:
        return c->stream_bytes;
    case REG_PLACE:
        return c->place;
    case REG_BASE:
        return c->place < CONVEYOR_PLACES ? c->places[c->place].base : 0;
    case REG_CYCLES:
        return read_cycles(c);
    case REG_CYCLES_HIGH:
        return c->cycles_high;
    default:
        return 0;
    }
}

static void write_register(void *state, uint32_t offset, uint32_t value)
{
    struct conveyor *const c = state;
    switch (offset / 4u) {
    case REG_START:
        start(c);
        break;
    case REG_STATUS:
        c->bus->interrupt(c->bus->context, 0);
        break;
    case REG_STREAM:
        c->stream = value;
        break;
    case REG_BYTES:
        c->stream_bytes = value;
        break;
    case REG_PLACE:
        c->place = value;
        break;
    case REG_BASE:
        if (c->place < CONVEYOR_PLACES) {
            c->places[c->place].base = value;
        }
        break;
    default:
        break;
    }
}

static uint64_t cycles(const void *state)
{
    const struct conveyor *const c = state;
    return c->cycles;
}

static void inject(void *state, enum uaccel_device_fault fault)
{
    struct conveyor *const c = state;
    c->fault = fault;
    if (fault == UACCEL_FAULT_VERSION) {
        c->version = VERSION_2_0;
    }
}

extern const struct uaccel_device_model conveyor_device;
const struct uaccel_device_model conveyor_device = {
    .name = "conveyor",
    .window = 4u * REGS,
    .start = 4u * REG_START,
    .state = &conveyor,
    .reset = reset,
    .read = read_register,
    .write = write_register,
    .cycles = cycles,
    .inject = inject,
};
