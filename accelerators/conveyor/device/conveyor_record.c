/* What all operations need: the record's words, memory, time, and the arithmetic of quantised numbers. */
#include "conveyor_device.h"

#include <stddef.h>

enum { TENSORS = 4, FIRST_FIELD = 1 + 2 * TENSORS };
enum { BUS_BYTES = 8, COMMAND_CYCLES = 32 };
enum { LARGEST_EXTENT = 65535, LARGEST_WINDOW = 255 };

uint32_t conveyor_word(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

int32_t conveyor_wrapped(uint32_t value)
{
    return value <= INT32_MAX ? (int32_t)value : -(int32_t)(UINT32_MAX - value) - 1;
}

int32_t conveyor_field(const struct conveyor *c, uint32_t number)
{
    return conveyor_wrapped(c->record[FIRST_FIELD + number]);
}

bool conveyor_rest_is_zero(const struct conveyor *c, uint32_t tensors, uint32_t count)
{
    uint32_t used = 0;
    for (uint32_t i = 1u + 2u * tensors; i < FIRST_FIELD; ++i) {
        used |= c->record[i];
    }
    for (uint32_t i = FIRST_FIELD + count; i < CONVEYOR_RECORD_WORDS; ++i) {
        used |= c->record[i];
    }
    return used == 0;
}

enum conveyor_error conveyor_find(const struct conveyor *c, uint32_t number, uint64_t bytes, bool write,
                                  struct conveyor_tensor *tensor)
{
    const uint32_t place = c->record[1u + 2u * number];
    const uint64_t offset = c->record[2u + 2u * number];
    if (place >= c->place_count) {
        return CONVEYOR_BAD_PLACE;
    }
    const struct conveyor_place *const p = &c->places[place];
    const bool writable = p->kind == CONVEYOR_OUTPUT || p->kind == CONVEYOR_SCRATCH;
    if (p->base == 0 || (write && !writable) || bytes > p->bytes || offset > p->bytes - bytes ||
        p->base + offset + bytes > UINT64_C(0x100000000)) {
        return CONVEYOR_BAD_PLACE;
    }
    tensor->address = p->base + (uint32_t)offset;
    return CONVEYOR_GOOD;
}

enum conveyor_error conveyor_load(const struct conveyor *c, struct conveyor_tensor from, uint64_t offset, void *to,
                                  uint32_t bytes)
{
    const uint32_t address = from.address + (uint32_t)offset;
    return c->bus->read(c->bus->context, address, to, bytes) == 0 ? CONVEYOR_GOOD : CONVEYOR_BAD_BUS;
}

enum conveyor_error conveyor_store(const struct conveyor *c, struct conveyor_tensor to, uint64_t offset,
                                   const void *from, uint32_t bytes)
{
    const uint32_t address = to.address + (uint32_t)offset;
    return c->bus->write(c->bus->context, address, from, bytes) == 0 ? CONVEYOR_GOOD : CONVEYOR_BAD_BUS;
}

void conveyor_count(struct conveyor *c, uint64_t work, uint32_t rate, uint64_t moved)
{
    c->cycles += COMMAND_CYCLES + (work + rate - 1u) / rate + (moved + BUS_BYTES - 1u) / BUS_BYTES;
}

bool conveyor_is_scale(int32_t multiplier, int32_t shift)
{
    return multiplier >= 0 && shift >= -31 && shift <= 30;
}

bool conveyor_is_int8(int32_t value)
{
    return value >= INT8_MIN && value <= INT8_MAX;
}

bool conveyor_is_range(int32_t low, int32_t high)
{
    return conveyor_is_int8(low) && conveyor_is_int8(high) && low <= high;
}

/* floor(value / 2^bits). */
static int64_t floored(int64_t value, int32_t bits)
{
    return value >= 0 ? value >> bits : -((-value + (INT64_C(1) << bits) - 1) >> bits);
}

/* value * multiplier / 2^31, halves upwards; then / 2^-shift, halves away from zero. Left shifts come first, and wrap. */
int32_t conveyor_scaled(int32_t value, int32_t multiplier, int32_t shift)
{
    const int32_t raised = conveyor_wrapped((uint32_t)value << (shift > 0 ? shift : 0));
    const int64_t high = floored((int64_t)raised * multiplier + (INT64_C(1) << 30), 31);
    if (shift >= 0) {
        return (int32_t)high;
    }
    const int64_t half = INT64_C(1) << (-shift - 1);
    return (int32_t)(high >= 0 ? (high + half) >> -shift : -((-high + half) >> -shift));
}

int8_t conveyor_clamped(int64_t value, int32_t low, int32_t high)
{
    return (int8_t)(value < low ? low : (value > high ? high : value));
}

bool conveyor_is_window_number(int32_t value, int32_t least)
{
    return value >= least && value <= LARGEST_WINDOW;
}

enum conveyor_error conveyor_window(const struct conveyor *c, struct conveyor_window *w)
{
    int32_t *const fields[CONVEYOR_WINDOW_FIELDS] = {
        &w->batch,        &w->in_height,     &w->in_width,     &w->in_channels,   &w->out_height,
        &w->out_width,    &w->out_channels,  &w->kernel_height, &w->kernel_width, &w->stride_height,
        &w->stride_width, &w->pad_top,       &w->pad_left};
    bool good = true;
    for (uint32_t i = 0; i < CONVEYOR_WINDOW_FIELDS; ++i) {
        const int32_t value = conveyor_field(c, i);
        *fields[i] = value;
        good = good && (i < 7 ? value >= 1 && value <= LARGEST_EXTENT : conveyor_is_window_number(value, i < 11));
    }
    w->in_bytes = 0;
    w->out_bytes = 0;
    if (good) {
        w->in_bytes = (uint64_t)w->batch * (uint64_t)w->in_height * (uint64_t)w->in_width * (uint64_t)w->in_channels;
        w->out_bytes =
            (uint64_t)w->batch * (uint64_t)w->out_height * (uint64_t)w->out_width * (uint64_t)w->out_channels;
    }
    return good ? CONVEYOR_GOOD : CONVEYOR_BAD_SHAPE;
}
