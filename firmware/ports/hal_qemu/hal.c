/* Devices behind a board under QEMU. The same firmware runs on the real board: where no emulator answers, a device is at
 * the address that the board file gives, if it does.
 *
 * Looking for devices and what the mailbox takes are not the model's expense: these instructions are not counted. */
#include "uaccel_hal.h"

#include <stdbool.h>
#include <stddef.h>

#include "board_devices.h"
#include "mailbox.h"
#include "mmio.h"
#include "pause.h"
#include "uaccel_port.h"

enum { MOST_DEVICES = 16 };

struct handle {
    const struct uaccel_board_device *hardware; /* NULL: emulated */
    uint32_t number;                            /* in the emulator */
};

static struct handle handles[MOST_DEVICES];
static uint32_t handle_count;

extern volatile struct uaccel_mailbox uaccel_mailbox;
__attribute__((section(".bss.uaccel_window"), aligned(16))) volatile struct uaccel_mailbox uaccel_mailbox;

void uaccel_mailbox_rung(void);
UACCEL_PORT_UNCOUNTED void uaccel_mailbox_rung(void)
{
    __asm volatile("" ::: "memory");
}

static UACCEL_PORT_UNCOUNTED bool serve(uint32_t request, uint32_t device, uint32_t offset, uint32_t value)
{
    uaccel_mailbox.device = device;
    uaccel_mailbox.offset = offset;
    uaccel_mailbox.value = value;
    uaccel_mailbox.request = request;
    __sync_synchronize();
    uaccel_mailbox_rung();
    return uaccel_mailbox.request == UACCEL_MAILBOX_SERVED;
}

static UACCEL_PORT_UNCOUNTED uint32_t find_emulated(const char *name)
{
    uint32_t at = 0;
    while (name[at] != '\0' && at < UACCEL_MAILBOX_NAME_BYTES - 1u) {
        uaccel_mailbox.name[at] = name[at];
        at++;
    }
    uaccel_mailbox.name[at] = '\0';
    return serve(UACCEL_MAILBOX_FIND, 0, 0, 0) ? uaccel_mailbox.value : UINT32_MAX;
}

/* Whether an emulator answers; asked once, when the firmware first looks for a device. */
static UACCEL_PORT_UNCOUNTED bool is_emulated(void)
{
    static enum { UNKNOWN, NO, YES } emulated;
    if (emulated == UNKNOWN) {
        emulated = serve(UACCEL_MAILBOX_RESET, 0, 0, 0) ? YES : NO;
    }
    return emulated == YES;
}

/* One handle for a device, however often it is looked for. */
static UACCEL_PORT_UNCOUNTED struct handle *handle_of(const struct uaccel_board_device *hardware, uint32_t number)
{
    for (uint32_t i = 0; i < handle_count; ++i) {
        if (handles[i].hardware == hardware && handles[i].number == number) {
            return &handles[i];
        }
    }
    if (handle_count == MOST_DEVICES) {
        return NULL;
    }
    struct handle *const handle = &handles[handle_count++];
    handle->hardware = hardware;
    handle->number = number;
    return handle;
}

UACCEL_PORT_UNCOUNTED void *uaccel_hal_device(const char *name)
{
    if (is_emulated()) {
        const uint32_t number = find_emulated(name);
        return number == UINT32_MAX ? NULL : handle_of(NULL, number);
    }
    const struct uaccel_board_device *const hardware = uaccel_board_find_device(name);
    return hardware == NULL || hardware->base == 0 ? NULL : handle_of(hardware, 0);
}

uint32_t uaccel_hal_read32(void *device, uint32_t offset)
{
    const struct handle *const handle = device;
    if (handle == NULL) {
        return UINT32_MAX;
    }
    if (handle->hardware != NULL) {
        return uaccel_mmio_read(handle->hardware->base, offset);
    }
    return serve(UACCEL_MAILBOX_READ, handle->number, offset, 0) ? uaccel_mailbox.value : UINT32_MAX;
}

void uaccel_hal_write32(void *device, uint32_t offset, uint32_t value)
{
    const struct handle *const handle = device;
    if (handle != NULL && handle->hardware != NULL) {
        uaccel_mmio_write(handle->hardware->base, offset, value);
    } else if (handle != NULL) {
        serve(UACCEL_MAILBOX_WRITE, handle->number, offset, value);
    }
}

uint32_t uaccel_hal_address(const void *memory)
{
    UACCEL_ACCOUNT_ADDRESS((uintptr_t)memory);
    return (uint32_t)(uintptr_t)memory;
}

uint32_t uaccel_hal_pause(const void *device)
{
    const struct handle *const handle = device;
    const bool sleeps = handle != NULL && handle->hardware != NULL && handle->hardware->interrupt >= 0;
    return sleeps ? uaccel_pause_until_interrupt((uint32_t)handle->hardware->interrupt) : 1;
}
