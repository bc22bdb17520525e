/* Waiting for a device, with an end. */
#include "uaccel_hal.h"

#include "pause.h"

#define ALL_ONES 0xFFFFFFFFu

enum { TEXT_BYTES = 80 };

static void add(char *text, uint32_t *used, const char *more)
{
    while (*more != '\0' && *used < TEXT_BYTES - 1u) {
        text[*used] = *more++;
        *used += 1u;
    }
    text[*used] = '\0';
}

static void add_hex(char *text, uint32_t *used, uint32_t value)
{
    char digits[11] = "0x00000000";
    for (uint32_t i = 0; i < 8u; ++i) {
        digits[2u + i] = "0123456789abcdef"[value >> (28u - 4u * i) & 15u];
    }
    add(text, used, digits);
}

static int32_t gone(uint32_t offset)
{
    char text[TEXT_BYTES];
    uint32_t used = 0;
    add(text, &used, "the device does not answer: register ");
    add_hex(text, &used, offset);
    add(text, &used, " reads all ones");
    UACCEL_ACCOUNT_FAILURE(text);
    return UACCEL_ACCELERATOR_GONE;
}

static int32_t timed_out(uint32_t offset, uint32_t seen)
{
    char text[TEXT_BYTES];
    uint32_t used = 0;
    add(text, &used, "the device did not finish: register ");
    add_hex(text, &used, offset);
    add(text, &used, " stays at ");
    add_hex(text, &used, seen);
    UACCEL_ACCOUNT_FAILURE(text);
    return UACCEL_ACCELERATOR_TIMEOUT;
}

int32_t uaccel_hal_wait(void *device, uint32_t offset, uint32_t mask, uint32_t value, uint32_t polls)
{
    uint32_t done = 0;
    for (;;) {
        const uint32_t seen = uaccel_hal_read32(device, offset);
        if (seen == ALL_ONES) {
            return gone(offset);
        }
        if ((seen & mask) == value) {
            return UACCEL_ACCELERATOR_OK;
        }
        const uint32_t more = uaccel_hal_pause(device);
        if (polls - done <= more) { /* done is below polls, unless that is 0 */
            return timed_out(offset, seen);
        }
        done += more;
    }
}
