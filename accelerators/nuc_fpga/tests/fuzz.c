/* Writes random register programs to the device's model: fuzz PROGRAMS SEED. Prints how many ended well, how many were
 * refused access to memory, and how many the device refused. Anything else that happens is an error. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uaccel_device.h"

#define MEMORY_AT 0x20000000u

enum { MEMORY_BYTES = 6000, CONTROL = 2, STATUS = 4, ERROR = 5, FEATURES = 7, OUT = 9, BATCH = 10, LAST = 21 };

extern const struct uaccel_device_model nuc_fpga_device;

static uint8_t *memory; /* of exactly its size, so that one byte too far is caught */
static uint64_t noise;
static int32_t line;

static uint32_t random_bits(void)
{
    noise = noise * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(noise >> 33);
}

static uint32_t below(uint32_t limit)
{
    return random_bits() % limit;
}

static uint8_t *memory_at(uint32_t address, uint32_t bytes)
{
    const uint32_t offset = address - MEMORY_AT;
    return offset < MEMORY_BYTES && bytes <= MEMORY_BYTES - offset ? memory + offset : NULL;
}

static int32_t read_memory(void *context, uint32_t address, void *to, uint32_t bytes)
{
    const uint8_t *const from = memory_at(address, bytes);
    (void)context;
    if (from == NULL) {
        return -1;
    }
    memcpy(to, from, bytes);
    return 0;
}

static int32_t write_memory(void *context, uint32_t address, const void *from, uint32_t bytes)
{
    uint8_t *const to = memory_at(address, bytes);
    (void)context;
    if (to == NULL) {
        return -1;
    }
    memcpy(to, from, bytes);
    return 0;
}

static void interrupt(void *context, int32_t level)
{
    (void)context;
    line = level;
}

static uint32_t any_number(void)
{
    static const uint32_t borders[] = {0, 1, 15, 16, 17, 255, 1022, 1024, 1025, 65535, 65536, 0x7FFFFFFF, 0xFFFFFFFF};
    switch (below(8)) {
    case 0:
        return borders[below(sizeof borders / sizeof borders[0])];
    case 1:
        return random_bits() * 2u;
    default:
        return 1u + below(6);
    }
}

static uint32_t any_address(void)
{
    return below(16) == 0 ? random_bits() * 2u : MEMORY_AT + 4u * below(MEMORY_BYTES / 4u);
}

static uint32_t read_register(uint32_t index)
{
    return nuc_fpga_device.read(nuc_fpga_device.state, 4u * index);
}

static void write_register(uint32_t index, uint32_t value)
{
    nuc_fpga_device.write(nuc_fpga_device.state, 4u * index, value);
}

/* Mostly sensible: else nothing would come past the first check. */
static void write_parameters(void)
{
    for (uint32_t index = BATCH; index <= LAST; ++index) {
        write_register(index, 1u + below(index == BATCH ? 2 : 6));
    }
    for (uint32_t changes = below(4); changes > 0; --changes) {
        write_register(BATCH + below(LAST - BATCH + 1u), any_number());
    }
    for (uint32_t index = FEATURES; index <= OUT; ++index) {
        write_register(index, any_address());
    }
    if (below(4) == 0) { /* and anything anywhere */
        write_register(below(nuc_fpga_device.window / 4u), any_number());
    }
}

int main(int argc, char **argv)
{
    static const struct uaccel_bus bus = {NULL, read_memory, write_memory, interrupt, NULL, NULL, NULL};
    unsigned long ends[4] = {0};
    const long programs = argc > 1 ? atol(argv[1]) : 1;
    noise = argc > 2 ? (uint64_t)atol(argv[2]) : 0;
    memory = calloc(1, MEMORY_BYTES);
    if (memory == NULL) {
        return 2;
    }
    nuc_fpga_device.reset(nuc_fpga_device.state, &bus);
    for (long i = 0; i < programs; ++i) {
        write_parameters();
        write_register(CONTROL, below(20) == 0 ? any_number() : 1u + below(2));
        const uint32_t status = read_register(STATUS);
        const uint32_t error = read_register(ERROR);
        if (status != (error == 0 ? 1u : 3u) || error > 2) {
            fprintf(stderr, "program %ld ends with status %u and error %u\n", i, (unsigned)status, (unsigned)error);
            return 1;
        }
        ends[error]++;
    }
    free(memory);
    printf("%lu %lu %lu\n", ends[0], ends[2], ends[1]);
    return line < 0 ? 1 : 0;
}
