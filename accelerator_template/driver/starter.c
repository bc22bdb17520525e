#include "starter.h"

#include <stddef.h>

#include "uaccel_accelerator.h"
#include "uaccel_hal.h" /* how to reach the device: a model of it, or the hardware; the driver does not see which */

#define IDENTITY 0x53544152u
#define VERSION 1u
#define POLLS_AT_LEAST 1000u
#define LARGEST 1024

/* The device's registers, by their offsets in bytes. */
enum {
    IDENTITY_AT = 0x00,
    VERSION_AT = 0x04,
    START_AT = 0x08,  /* 1 starts a job, 0 stops it */
    STATUS_AT = 0x0C, /* see below; 0 while a job is under way */
    X_AT = 0x10,      /* addresses */
    WEIGHTS_AT = 0x14,
    SUMS_AT = 0x18,
    ROWS_AT = 0x1C,
    DEPTH_AT = 0x20,
    UNITS_AT = 0x24,
    CYCLES_AT = 0x28 /* that the last job took */
};

enum { DONE = 1, FAILED = 2, REFUSED = 4 }; /* DONE however a job ended; REFUSED: access to memory */

static void *starter;

/* The text reaches whoever runs the model, together with the layer's name. */
static int32_t failed(int32_t code, const char *why)
{
    UACCEL_ACCOUNT_FAILURE(why);
    return code;
}

int32_t TVMDeviceStarterActivate(void *device)
{
    int32_t code = uaccel_hal_check(device, IDENTITY_AT, IDENTITY, UACCEL_ACCELERATOR_IDENTITY);
    if (code == UACCEL_ACCELERATOR_OK) {
        code = uaccel_hal_check(device, VERSION_AT, VERSION, UACCEL_ACCELERATOR_VERSION);
    }
    starter = device;
    return code;
}

int32_t TVMDeviceStarterOpen(void *device)
{
    (void)device; /* a place to switch on clocks or interrupts */
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceStarterClose(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceStarterDeactivate(void *device)
{
    (void)device;
    starter = NULL;
    return UACCEL_ACCELERATOR_OK;
}

/* Start the job whose parameters are in the registers, and wait for its end, but not for ever. */
static int32_t run(uint32_t polls)
{
    uaccel_hal_write32(starter, START_AT, 1);
    const int32_t code = uaccel_hal_wait(starter, STATUS_AT, DONE, DONE, polls);
    if (code != UACCEL_ACCELERATOR_OK) {
        uaccel_hal_write32(starter, START_AT, 0); /* or it may write later, when others use the memory */
        return code;
    }
    const uint32_t status = uaccel_hal_read32(starter, STATUS_AT);
    if ((status & REFUSED) != 0) {
        return failed(UACCEL_ACCELERATOR_BUS, "starter was refused access to memory");
    }
    if ((status & FAILED) != 0) {
        return failed(UACCEL_ACCELERATOR_ERROR, "starter reports an error");
    }
    UACCEL_ACCOUNT(1, uaccel_hal_read32(starter, CYCLES_AT)); /* one job, and its cycles: 'uaccel run' shows both */
    return UACCEL_ACCELERATOR_OK;
}

int32_t starter_multiply(const int8_t *x, const int8_t *weights, int32_t *sums, int32_t rows, int32_t depth,
                         int32_t units)
{
    if (rows < 1 || rows > LARGEST || depth < 1 || depth > LARGEST || units < 1 || units > LARGEST) {
        return failed(UACCEL_ACCELERATOR_ARGUMENT, "starter: a tensor would be empty or too large");
    }
    const uint32_t r = (uint32_t)rows;
    const uint32_t d = (uint32_t)depth;
    const uint32_t u = (uint32_t)units;
    const uint32_t parameters[] = {r, d, u};
    const void *const tensors[] = {x, weights, sums};
    const uint32_t bytes[] = {r * d, u * d, 4u * r * u};
    for (uint32_t i = 0; i < 3u; ++i) {
        const uint32_t address = uaccel_hal_address(tensors[i]); /* as the device sees it */
        if (address == 0) {
            return failed(UACCEL_ACCELERATOR_BUS, "starter: a tensor lies in memory that devices do not reach");
        }
        uaccel_hal_write32(starter, X_AT + 4u * i, address);
        uaccel_hal_write32(starter, ROWS_AT + 4u * i, parameters[i]);
        uaccel_hal_clean(tensors[i], bytes[i]); /* data caches: what the CPU has stored goes to memory now, */
    }
    const int32_t code = run(3u * r * d * u + POLLS_AT_LEAST); /* slow memory included, a product takes fewer polls */
    uaccel_hal_invalidate(sums, bytes[2]); /* and what the device has stored is not taken from a cache */
    return code;
}
