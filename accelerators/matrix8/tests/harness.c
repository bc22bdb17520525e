/* What the tests call: memory that the device reaches, and faults by name. */
#include <stddef.h>
#include <stdint.h>

#include "rack.h"
#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define REACHED 2000000

static uint8_t memory[REACHED] __attribute__((section("uaccel_arena"), aligned(64)));

extern const struct uaccel_device_model matrix8_device;
struct uaccel_rack_device uaccel_rack[] = {{.model = &matrix8_device}};
const uint32_t uaccel_rack_count = 1;

static uint32_t calls;
static uint64_t cycles;
static const char *said;

void uaccel_account(uint32_t more_calls, uint64_t more_cycles)
{
    calls += more_calls;
    cycles += more_cycles;
}

void uaccel_account_failure(const char *text)
{
    static char kept[80];
    size_t i = 0;
    for (; text[i] != '\0' && i + 1 < sizeof kept; ++i) {
        kept[i] = text[i];
    }
    kept[i] = '\0';
    said = kept;
}

uint8_t *test_memory(void);
uint8_t *test_memory(void)
{
    return memory;
}

/* The device as after power-on, to fail as said; NULL, or what is wrong with that. */
const char *test_reset(const char *faults);
const char *test_reset(const char *faults)
{
    (void)uaccel_hal_device("matrix8");
    uaccel_rack[0].fault = UACCEL_FAULT_NONE;
    const char *const wrong = uaccel_rack_let_fail(faults);
    uaccel_rack_reset();
    calls = 0;
    cycles = 0;
    said = "";
    return wrong;
}

uint32_t test_calls(void);
uint32_t test_calls(void)
{
    return calls;
}

uint64_t test_cycles(void);
uint64_t test_cycles(void)
{
    return cycles;
}

const char *test_said(void);
const char *test_said(void)
{
    return said;
}
