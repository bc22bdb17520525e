/* Random register accesses, most of them near what makes sense, under sanitizers: whatever comes, the model ends each
 * command, keeps its memories' bounds, and tells what was wrong. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "uaccel_device.h"

enum { WRITES = 400000, BUS_BYTES = 4096, ERROR_CODES = 6 };
enum { ERROR_AT = 0x0C, STATUS_AT = 0x08, COMMAND_AT = 0x14, CONTROL_AT = 0x18, FIRST = 0x40, END = 0x8C };

extern const struct uaccel_device_model matrix8_device;

static uint8_t bytes[BUS_BYTES];
static uint32_t seen[ERROR_CODES];
static uint64_t random_state = 88172645463325252u;

static uint32_t random_word(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

static int32_t is_there(uint32_t address, uint32_t count)
{
    return address <= BUS_BYTES && count <= BUS_BYTES - address;
}

static int32_t read_bus(void *context, uint32_t address, void *to, uint32_t count)
{
    (void)context;
    if (!is_there(address, count)) {
        return -1;
    }
    memcpy(to, bytes + address, count);
    return 0;
}

static int32_t write_bus(void *context, uint32_t address, const void *from, uint32_t count)
{
    (void)context;
    if (!is_there(address, count)) {
        return -1;
    }
    memcpy(bytes + address, from, count);
    return 0;
}

static void interrupt(void *context, int32_t level)
{
    (void)context;
    (void)level;
}

/* Small numbers, numbers around the memories' sizes, and any. */
static uint32_t value(void)
{
    static const uint32_t edges[] = {0, 1, 8, 64, 4096, 6144, 8192, 16384, 16385, 0x7FFFFFFFu, 0x80000000u, 0xFFFFFFFFu};
    switch (random_word() % 8u) {
    case 0:
        return edges[random_word() % (sizeof edges / sizeof edges[0])];
    case 1:
        return random_word();
    case 2:
        return 32u * (random_word() % 300u);
    default:
        return random_word() % 9u;
    }
}

int main(void)
{
    const struct uaccel_bus bus = {NULL, read_bus, write_bus, interrupt, NULL, NULL, NULL};
    const struct uaccel_device_model *const model = &matrix8_device;
    model->reset(model->state, &bus);
    for (uint32_t i = 0; i < WRITES; ++i) {
        const uint32_t offset = FIRST + random_word() % ((END - FIRST) / 4u) * 4u;
        model->write(model->state, offset, value());
        (void)model->read(model->state, random_word() % (END / 4u) * 4u);
        if (i % 4u == 0) {
            model->write(model->state, COMMAND_AT, random_word() % 6u);
            const uint32_t error = model->read(model->state, ERROR_AT);
            if (error >= ERROR_CODES || (error != 0) != (model->read(model->state, STATUS_AT) != 0)) {
                printf("error %u and status do not agree\n", (unsigned)error);
                return 1;
            }
            seen[error]++;
            model->write(model->state, CONTROL_AT, 1);
        }
    }
    for (uint32_t i = 0; i + 1u < ERROR_CODES; ++i) { /* the last one is injected only */
        printf("%u ", (unsigned)seen[i]);
        if (seen[i] < 100u) {
            printf("error code %u is hardly ever seen\n", (unsigned)i);
            return 1;
        }
    }
    return 0;
}
