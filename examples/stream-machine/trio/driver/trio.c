#include "trio.h"

#include <stddef.h>

#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define IDENTITY 0x5452494Fu
#define VERSION 1u

enum { PLACES = 8, COMMAND_BYTES = 32 };

/* Registers, by their offsets in bytes. */
enum {
    IDENTITY_AT = 0x00,
    VERSION_AT = 0x04,
    START_AT = 0x08,
    STATUS_AT = 0x0C,
    CYCLES_AT = 0x10,   /* of the last stream */
    FAILED_AT = 0x14,   /* the number of the command that failed */
    STREAM_AT = 0x18,   /* its address */
    COMMANDS_AT = 0x1C, /* how many there are */
    PLACES_AT = 0x20    /* 8 addresses */
};

enum { DONE = 1, FAILED = 2 };

static void *trio;
static const void *places[PLACES];
static uint32_t sizes[PLACES];
static uint32_t count;

int32_t TVMDeviceTrioActivate(void *device)
{
    const int32_t code = uaccel_hal_check(device, IDENTITY_AT, IDENTITY, UACCEL_ACCELERATOR_IDENTITY);
    trio = device;
    return code != UACCEL_ACCELERATOR_OK ? code
                                         : uaccel_hal_check(device, VERSION_AT, VERSION, UACCEL_ACCELERATOR_VERSION);
}

int32_t TVMDeviceTrioOpen(void *device)
{
    (void)device;
    count = 0;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceTrioClose(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceTrioDeactivate(void *device)
{
    (void)device;
    trio = NULL;
    return UACCEL_ACCELERATOR_OK;
}

int32_t trio_place(uint32_t number, const void *memory, uint32_t bytes)
{
    const uint32_t address = uaccel_hal_address(memory);
    if (number >= PLACES) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_ARGUMENT, "there is no place ", number, "");
    }
    if (address == 0) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_BUS, "place ", number, " lies where the device does not reach");
    }
    uaccel_hal_write32(trio, PLACES_AT + 4u * number, address);
    uaccel_hal_clean(memory, bytes); /* data caches: what the CPU stored goes to memory, */
    places[number] = memory;
    sizes[number] = bytes;
    count = number + 1u;
    return UACCEL_ACCELERATOR_OK;
}

int32_t trio_play(const void *stream, uint32_t commands, uint32_t layers, uint32_t cycles)
{
    const uint32_t address = uaccel_hal_address(stream);
    if (address == 0) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_BUS, "a stream of ", commands, " lies where trio does not reach");
    }
    uaccel_hal_clean(stream, commands * COMMAND_BYTES);
    uaccel_hal_write32(trio, STREAM_AT, address);
    uaccel_hal_write32(trio, COMMANDS_AT, commands);
    uaccel_hal_write32(trio, START_AT, 1);
    const int32_t code = uaccel_hal_wait(trio, STATUS_AT, DONE, DONE, cycles + 10000u);
    for (uint32_t i = 0; i < count; ++i) {
        uaccel_hal_invalidate(places[i], sizes[i]); /* and what the device stored comes from memory */
    }
    if (code != UACCEL_ACCELERATOR_OK) {
        uaccel_hal_write32(trio, START_AT, 0); /* or it may write later, when others use the memory */
        return code;
    }
    if ((uaccel_hal_read32(trio, STATUS_AT) & FAILED) != 0) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_ERROR, "trio: command ", uaccel_hal_read32(trio, FAILED_AT), "");
    }
    UACCEL_ACCOUNT(layers, uaccel_hal_read32(trio, CYCLES_AT));
    return UACCEL_ACCELERATOR_OK;
}
