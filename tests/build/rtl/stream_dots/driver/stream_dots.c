#include "stream_dots.h"

#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define IDENTITY 0x414D4453u
#define POLLS_AT_LEAST 1000u

/* The DMA's registers, by their offsets in bytes. */
enum {
    IDENTITY_AT = 0x00,
    VERSION_AT = 0x04,
    STATUS_AT = 0x08,
    SOURCE_AT = 0x0C,
    SEND_AT = 0x10,
    TARGET_AT = 0x14,
    RECEIVE_AT = 0x18,
    RECEIVED_AT = 0x1C,
    CYCLES_AT = 0x20
};

enum { SENDS = 1, RECEIVES = 2, REFUSED = 4 };

static void *dots;

static int32_t failed(int32_t code, const char *why)
{
    UACCEL_ACCOUNT_FAILURE(why);
    uaccel_hal_write32(dots, STATUS_AT, 0);
    return code;
}

int32_t TVMDeviceStreamDotsActivate(void *device)
{
    const int32_t code = uaccel_hal_check(device, IDENTITY_AT, IDENTITY, UACCEL_ACCELERATOR_IDENTITY);
    dots = device;
    return code == UACCEL_ACCELERATOR_OK ? uaccel_hal_check(device, VERSION_AT, 1, UACCEL_ACCELERATOR_VERSION) : code;
}

static int32_t send(uint32_t address, uint32_t bytes, uint32_t until)
{
    uaccel_hal_write32(dots, SOURCE_AT, address);
    uaccel_hal_write32(dots, SEND_AT, bytes);
    const int32_t code = uaccel_hal_wait(dots, STATUS_AT, until, 0, POLLS_AT_LEAST + bytes);
    if (code != UACCEL_ACCELERATOR_OK) {
        uaccel_hal_write32(dots, STATUS_AT, 0);
    }
    return code;
}

/* One row: its sums come while the weights go. */
static int32_t run(uint32_t x, uint32_t weights, uint32_t sums, uint32_t depth, uint32_t units)
{
    uaccel_hal_write32(dots, TARGET_AT, sums);
    uaccel_hal_write32(dots, RECEIVE_AT, 4u * units);
    int32_t code = send(x, depth, SENDS);
    if (code == UACCEL_ACCELERATOR_OK) {
        code = send(weights, units * depth, SENDS | RECEIVES);
    }
    if (code != UACCEL_ACCELERATOR_OK) {
        return code;
    }
    if ((uaccel_hal_read32(dots, STATUS_AT) & REFUSED) != 0) {
        return failed(UACCEL_ACCELERATOR_BUS, "the DMA was refused access to memory");
    }
    if (uaccel_hal_read32(dots, RECEIVED_AT) != 4u * units) {
        return failed(UACCEL_ACCELERATOR_ERROR, "not as many sums came as there are units");
    }
    UACCEL_ACCOUNT(1, uaccel_hal_read32(dots, CYCLES_AT));
    return UACCEL_ACCELERATOR_OK;
}

int32_t stream_dots_multiply(const int8_t *x, const int8_t *weights, int32_t *sums, int32_t rows, int32_t depth,
                             int32_t units)
{
    const uint32_t r = (uint32_t)rows, d = (uint32_t)depth, u = (uint32_t)units;
    const uint32_t from = uaccel_hal_address(x), by = uaccel_hal_address(weights), to = uaccel_hal_address(sums);
    int32_t code = from != 0 && by != 0 && to != 0
                       ? UACCEL_ACCELERATOR_OK
                       : failed(UACCEL_ACCELERATOR_BUS, "a tensor lies in memory that the DMA does not reach");
    uaccel_hal_clean(x, r * d);
    uaccel_hal_clean(weights, u * d);
    uaccel_hal_clean(sums, 4u * r * u);
    for (uint32_t row = 0; row < r && code == UACCEL_ACCELERATOR_OK; ++row) {
        code = run(from + row * d, by, to + 4u * row * u, d, u);
    }
    uaccel_hal_invalidate(sums, 4u * r * u);
    return code;
}
