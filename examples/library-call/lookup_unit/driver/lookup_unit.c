#include "lookup_unit.h"

#include <stddef.h>

#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define IDENTITY 0x4C4F4F4Bu
#define VERSION 1u
#define LARGEST 65536u

/* Registers, by their offsets in bytes. */
enum {
    IDENTITY_AT = 0x00,
    VERSION_AT = 0x04,
    START_AT = 0x08,
    STATUS_AT = 0x0C,
    TENSORS_AT = 0x10, /* the addresses of x, table and y */
    BYTES_AT = 0x1C,
    CYCLES_AT = 0x20 /* of the last job */
};

enum { DONE = 1, FAILED = 2, REFUSED = 4 };

static void *unit;

static int32_t failed(int32_t code, const char *why)
{
    UACCEL_ACCOUNT_FAILURE(why);
    return code;
}

int32_t TVMDeviceLookupUnitActivate(void *device)
{
    const int32_t code = uaccel_hal_check(device, IDENTITY_AT, IDENTITY, UACCEL_ACCELERATOR_IDENTITY);
    unit = device;
    return code != UACCEL_ACCELERATOR_OK ? code
                                         : uaccel_hal_check(device, VERSION_AT, VERSION, UACCEL_ACCELERATOR_VERSION);
}

int32_t TVMDeviceLookupUnitOpen(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceLookupUnitClose(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceLookupUnitDeactivate(void *device)
{
    (void)device;
    unit = NULL;
    return UACCEL_ACCELERATOR_OK;
}

static int32_t run(uint32_t polls)
{
    uaccel_hal_write32(unit, START_AT, 1);
    const int32_t code = uaccel_hal_wait(unit, STATUS_AT, DONE, DONE, polls);
    if (code != UACCEL_ACCELERATOR_OK) {
        uaccel_hal_write32(unit, START_AT, 0); /* or it may write later, when others use the memory */
        return code;
    }
    const uint32_t status = uaccel_hal_read32(unit, STATUS_AT);
    if ((status & REFUSED) != 0) {
        return failed(UACCEL_ACCELERATOR_BUS, "lookup_unit was refused access to memory");
    }
    if ((status & FAILED) != 0) {
        return failed(UACCEL_ACCELERATOR_ERROR, "lookup_unit reports an error");
    }
    UACCEL_ACCOUNT(1, uaccel_hal_read32(unit, CYCLES_AT)); /* one job and its cycles: `uaccel run` shows them */
    return UACCEL_ACCELERATOR_OK;
}

int32_t lookup_unit_translate(const void *x, const void *table, void *y, uint32_t bytes)
{
    const void *const tensors[] = {x, table, y};
    const uint32_t sizes[] = {bytes, 256, bytes};
    if (bytes == 0 || bytes > LARGEST) {
        return failed(UACCEL_ACCELERATOR_ARGUMENT, "lookup_unit: a tensor is empty or too large");
    }
    for (uint32_t i = 0; i < 3; ++i) {
        const uint32_t address = uaccel_hal_address(tensors[i]); /* as the device sees it */
        if (address == 0) {
            return failed(UACCEL_ACCELERATOR_BUS, "lookup_unit: a tensor lies where the device does not reach");
        }
        uaccel_hal_write32(unit, TENSORS_AT + 4u * i, address);
        uaccel_hal_clean(tensors[i], sizes[i]); /* data caches: what the CPU stored goes to memory, */
    }
    uaccel_hal_write32(unit, BYTES_AT, bytes);
    const int32_t code = run(bytes + 1000u);
    uaccel_hal_invalidate(y, bytes); /* and what the device stored comes from memory */
    return code;
}
