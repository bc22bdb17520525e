/* Devices inside the host's process: their models are linked with the firmware.
 *
 * A device's addresses have 32 bits, and count from a symbol of the process: they are the same in every run, wherever it
 * is loaded. What devices reach is the model's arena, inputs, outputs and device constants, and nothing else. */
#include "uaccel_hal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "pause.h"
#include "rack.h"
#include "uaccel_account_state.h"

#define ANCHOR_ADDRESS 0x80000000u

extern struct uaccel_account_state uaccel_account_state __attribute__((weak));

enum { POLL_CYCLES = 16 }; /* that a CPU takes from one look at a device to the next */

/* The linker's names for the beginning and the end of a section; 0 where the firmware has none such. */
#define SECTION(name)                                                                                                  \
    extern uint8_t __start_##name[] __attribute__((weak, visibility("hidden")));                                       \
    extern uint8_t __stop_##name[] __attribute__((weak, visibility("hidden")))
SECTION(uaccel_arena);
SECTION(uaccel_io);
SECTION(uaccel_device_constants);

static const uint8_t anchor __attribute__((aligned(4096))) = 0; /* so that aligned memory has an aligned address */

struct reach {
    uint8_t *begin;
    uint8_t *end;
    bool writable;
};

static const struct reach reaches[] = {
    {__start_uaccel_arena, __stop_uaccel_arena, true},
    {__start_uaccel_io, __stop_uaccel_io, true},
    {__start_uaccel_device_constants, __stop_uaccel_device_constants, false},
};

enum { REACHES = sizeof reaches / sizeof reaches[0] };

static uint32_t address_of(const uint8_t *memory)
{
    return (uint32_t)((uintptr_t)memory - (uintptr_t)&anchor) + ANCHOR_ADDRESS;
}

/* NULL where no device reaches all of it. */
static uint8_t *memory_at(uint32_t address, uint32_t bytes, bool write)
{
    for (size_t i = 0; i < REACHES; ++i) {
        const size_t size = (size_t)(reaches[i].end - reaches[i].begin);
        const uint32_t offset = address - address_of(reaches[i].begin);
        if (offset < size && bytes <= size - offset) {
            return write && !reaches[i].writable ? NULL : reaches[i].begin + offset;
        }
    }
    return NULL;
}

static int32_t read_memory(void *context, uint32_t address, void *to, uint32_t bytes)
{
    const uint8_t *const from = memory_at(address, bytes, false);
    (void)context;
    if (from == NULL) {
        return -1;
    }
    memcpy(to, from, bytes);
    return 0;
}

static int32_t write_memory(void *context, uint32_t address, const void *from, uint32_t bytes)
{
    uint8_t *const to = memory_at(address, bytes, true);
    (void)context;
    if (to == NULL) {
        return -1;
    }
    memcpy(to, from, bytes);
    return 0;
}

static bool is_constant(void *context, uint32_t address)
{
    (void)context;
    return memory_at(address, 1, false) != NULL && memory_at(address, 1, true) == NULL;
}

/* Drivers poll here. */
static void interrupt(void *context, int32_t level)
{
    (void)context;
    (void)level;
}

static void begin(void)
{
    static const struct uaccel_bus memory = {NULL, read_memory, write_memory, interrupt, NULL, NULL, is_constant};
    static bool begun;
    if (!begun) {
        begun = true;
        if (!uaccel_rack_environment()) {
            exit(EXIT_FAILURE);
        }
        if (!uaccel_rack_begin(&memory)) {
            exit(EXIT_FAILURE);
        }
        atexit(uaccel_rack_end);
    }
}

void *uaccel_hal_device(const char *name)
{
    begin();
    return uaccel_rack_find(name);
}

uint32_t uaccel_hal_read32(void *device, uint32_t offset)
{
    return device == NULL ? UINT32_MAX : uaccel_rack_read(device, offset);
}

void uaccel_hal_write32(void *device, uint32_t offset, uint32_t value)
{
    if (device != NULL) {
        if (&uaccel_account_state != NULL) {
            uaccel_rack_layer(uaccel_account_state.layer);
        }
        if (memory_at(value, 1, false) != NULL) { /* no other number lies just there */
            UACCEL_ACCOUNT_ADDRESS(value);
        }
        uaccel_rack_write(device, offset, value);
    }
}

uint32_t uaccel_hal_address(const void *memory)
{
    for (size_t i = 0; i < REACHES; ++i) {
        const uint8_t *const byte = memory;
        if (byte >= reaches[i].begin && byte < reaches[i].end) {
            UACCEL_ACCOUNT_ADDRESS(address_of(byte));
            return address_of(byte);
        }
    }
    return 0;
}

/* A model without a clock has finished before anybody looks; for the others time passes here. */
uint32_t uaccel_hal_pause(const void *device)
{
    (void)device;
    uaccel_rack_pass(POLL_CYCLES);
    return 1;
}
