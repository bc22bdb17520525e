/* The DMA and what is between its streams: a packet does all of its work at once. */
#include "uaccel_registers.h"

enum { LARGEST = 1024, WORD = 4 };
enum { REG_IDENTITY, REG_VERSION, REG_STATUS, REG_SOURCE, REG_SEND, REG_TARGET, REG_RECEIVE, REG_RECEIVED, REG_CYCLES, REGS };
enum { REFUSED = 4 };

static uint32_t reg[REGS];
static int8_t row[LARGEST], weights[LARGEST];
static uint32_t depth; /* of the row that is there; 0 without one */

static uint32_t work(uint32_t bytes);

static struct uaccel_registers chip = {
    .values = reg,
    .count = REGS,
    .identity = 0x414D4453u,
    .version = 1,
    .first = REG_SOURCE,
    .last = REG_RECEIVE,
    .start = REG_SEND,
    .status = REG_STATUS,
    .work = work,
};

static uint32_t sum_of_row(void)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < depth; ++i) {
        sum += (uint32_t)(row[i] * weights[i]);
    }
    return sum;
}

static uint32_t work(uint32_t bytes)
{
    const struct uaccel_bus *const bus = chip.bus;
    const uint32_t beats = bytes / WORD + 1;
    uint32_t units = 0;
    if (depth == 0) {
        depth = bytes;
        reg[REG_CYCLES] = beats;
        chip.busy += beats;
        return bus->read(bus->context, reg[REG_SOURCE], row, bytes) != 0 ? REFUSED : 0;
    }
    for (; (units + 1) * depth <= bytes; ++units) {
        const int32_t got = bus->read(bus->context, reg[REG_SOURCE] + units * depth, weights, depth);
        const uint32_t sum = sum_of_row();
        if (got != 0 || bus->write(bus->context, reg[REG_TARGET] + WORD * units, &sum, WORD) != 0) {
            depth = 0;
            return REFUSED;
        }
    }
    depth = 0;
    reg[REG_RECEIVED] = WORD * units;
    reg[REG_CYCLES] += beats + 2;
    chip.busy += beats + 2;
    return 0;
}

extern const struct uaccel_device_model stream_dots_device;
const struct uaccel_device_model stream_dots_device = UACCEL_REGISTERS_MODEL("stream_dots", chip, REG_SEND, REGS);
