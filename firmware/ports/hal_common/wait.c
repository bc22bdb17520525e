/* Asking a device, with an end to every wait and a reason for every failure. */
#include "pause.h"
#include "uaccel_hal.h"

#define ALL_ONES 0xFFFFFFFFu

enum { TEXT_BYTES = 80 };

struct line {
    uint32_t used;
    char text[TEXT_BYTES];
};

static void add(struct line *line, const char *more)
{
    while (*more != '\0' && line->used < TEXT_BYTES - 1u) {
        line->text[line->used] = *more++;
        line->used++;
    }
    line->text[line->used] = '\0';
}

static void add_hex(struct line *line, uint32_t value)
{
    char digits[11] = "0x00000000";
    for (uint32_t i = 0; i < 8u; ++i) {
        digits[2u + i] = "0123456789abcdef"[value >> (28u - 4u * i) & 15u];
    }
    add(line, digits);
}

static void add_number(struct line *line, uint32_t value)
{
    char digits[11];
    uint32_t at = sizeof digits - 1u;
    digits[at] = '\0';
    do {
        at--;
        digits[at] = "0123456789"[value % 10u];
        value /= 10u;
    } while (value != 0);
    add(line, digits + at);
}

/* "<begin>register 0x00000004<middle>0x00020000" */
static void tell(const char *begin, uint32_t offset, const char *middle, uint32_t seen, struct line *line)
{
    line->used = 0;
    add(line, begin);
    add(line, "register ");
    add_hex(line, offset);
    add(line, middle);
    add_hex(line, seen);
}

static int32_t gone(uint32_t offset)
{
    struct line line;
    tell("the device does not answer: ", offset, " reads ", ALL_ONES, &line);
    UACCEL_ACCOUNT_FAILURE(line.text);
    return UACCEL_ACCELERATOR_GONE;
}

static int32_t timed_out(uint32_t offset, uint32_t seen)
{
    struct line line;
    tell("the device did not finish: ", offset, " stays at ", seen, &line);
    UACCEL_ACCOUNT_FAILURE(line.text);
    return UACCEL_ACCELERATOR_TIMEOUT;
}

int32_t uaccel_hal_check(void *device, uint32_t offset, uint32_t wanted, int32_t code)
{
    const uint32_t seen = uaccel_hal_read32(device, offset);
    struct line line;
    if (seen == wanted) {
        return UACCEL_ACCELERATOR_OK;
    }
    if (seen == ALL_ONES) {
        return gone(offset);
    }
    const char *const what = code == UACCEL_ACCELERATOR_VERSION ? "another version: "
                             : code == UACCEL_ACCELERATOR_IDENTITY ? "another device: "
                                                                   : "";
    tell(what, offset, " is ", seen, &line);
    add(&line, ", wanted ");
    add_hex(&line, wanted);
    UACCEL_ACCOUNT_FAILURE(line.text);
    return code;
}

int32_t uaccel_hal_failed(int32_t code, const char *before, uint32_t number, const char *after)
{
    struct line line = {0, ""};
    add(&line, before);
    add_number(&line, number);
    add(&line, after);
    UACCEL_ACCOUNT_FAILURE(line.text);
    return code;
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
