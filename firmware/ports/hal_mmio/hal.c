/* Devices of the board itself: hardware, at the addresses that the board file gives. */
#include "uaccel_hal.h"

#include <stddef.h>

#include "board_devices.h"
#include "mmio.h"
#include "pause.h"

/* The handle is the entry of the table, which nobody writes. */
void *uaccel_hal_device(const char *name)
{
    const struct uaccel_board_device *const device = uaccel_board_find_device(name);
    return device == NULL || device->base == 0 ? NULL : (void *)(uintptr_t)device;
}

uint32_t uaccel_hal_read32(void *device, uint32_t offset)
{
    const struct uaccel_board_device *const entry = device;
    return entry == NULL ? UINT32_MAX : uaccel_mmio_read(entry->base, offset);
}

void uaccel_hal_write32(void *device, uint32_t offset, uint32_t value)
{
    const struct uaccel_board_device *const entry = device;
    if (entry != NULL) {
        uaccel_mmio_write(entry->base, offset, value);
    }
}

uint32_t uaccel_hal_address(const void *memory)
{
    UACCEL_ACCOUNT_ADDRESS((uintptr_t)memory);
    return (uint32_t)(uintptr_t)memory;
}

uint32_t uaccel_hal_pause(const void *device)
{
    const struct uaccel_board_device *const entry = device;
    const int32_t irq = entry == NULL ? UACCEL_NO_INTERRUPT : entry->interrupt;
    return irq == UACCEL_NO_INTERRUPT ? 1 : uaccel_pause_until_interrupt((uint32_t)irq);
}
