#include "adder.h"

#include <stddef.h>

#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define ADDER_IDENTITY 0x41444452u
#define ADDER_VERSION 0x00010000u
#define ADDER_POLLS 1000u

enum {
    ADDER_IDENTITY_AT = 0x00,
    ADDER_VERSION_AT = 0x04,
    ADDER_START_AT = 0x08,
    ADDER_STATUS_AT = 0x0C,
    ADDER_SOURCE_AT = 0x10,
    ADDER_TARGET_AT = 0x14,
    ADDER_COUNT_AT = 0x18,
    ADDER_VALUE_AT = 0x1C,
    ADDER_CYCLES_AT = 0x20
};

enum { DONE = 1, FAILED = 2, REFUSED = 4 };

static void *adder;

int32_t TVMDeviceAdderActivate(void *device)
{
    const int32_t status =
        uaccel_hal_check(device, ADDER_IDENTITY_AT, ADDER_IDENTITY, UACCEL_ACCELERATOR_IDENTITY);
    adder = device;
    return status != 0 ? status
                       : uaccel_hal_check(device, ADDER_VERSION_AT, ADDER_VERSION, UACCEL_ACCELERATOR_VERSION);
}

int32_t TVMDeviceAdderOpen(void *device)
{
    (void)device;
    return 0;
}

int32_t TVMDeviceAdderClose(void *device)
{
    (void)device;
    return 0;
}

int32_t TVMDeviceAdderDeactivate(void *device)
{
    (void)device;
    adder = NULL;
    return 0;
}

static int32_t wait_for_the_end(void)
{
    const int32_t status = uaccel_hal_wait(adder, ADDER_STATUS_AT, DONE, DONE, ADDER_POLLS);
    if (status != 0) {
        return status;
    }
    const uint32_t end = uaccel_hal_read32(adder, ADDER_STATUS_AT);
    if ((end & FAILED) != 0) {
        return UACCEL_ACCELERATOR_ERROR;
    }
    return (end & REFUSED) != 0 ? UACCEL_ACCELERATOR_BUS : 0;
}

int32_t adder_add(const int8_t *from, int8_t *to, uint32_t count, int8_t value)
{
    const uint32_t before = uaccel_hal_read32(adder, ADDER_CYCLES_AT);
    uaccel_hal_clean(from, count);
    uaccel_hal_clean(to, count);
    uaccel_hal_write32(adder, ADDER_SOURCE_AT, uaccel_hal_address(from));
    uaccel_hal_write32(adder, ADDER_TARGET_AT, uaccel_hal_address(to));
    uaccel_hal_write32(adder, ADDER_COUNT_AT, count);
    uaccel_hal_write32(adder, ADDER_VALUE_AT, (uint32_t)value);
    uaccel_hal_write32(adder, ADDER_START_AT, 1);
    const int32_t status = wait_for_the_end();
    uaccel_hal_invalidate(to, count);
    if (status == 0) {
        UACCEL_ACCOUNT(1, uaccel_hal_read32(adder, ADDER_CYCLES_AT) - before);
    }
    return status;
}
