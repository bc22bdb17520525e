/* What a driver finds around it in a test of its own: memory that devices reach, and somebody who listens. */
#include <stdint.h>
#include <string.h>

#include "rack.h"
#include "uaccel_accelerator.h"
#include "uaccel_log.h"

#define SECTION(name) __attribute__((section(name), aligned(64)))

enum { TEXT_BYTES = 256 };

/* The test writes to both; devices only to the first. */
static uint8_t shared[MEMORY_BYTES] SECTION("uaccel_arena");
static uint8_t constants[MEMORY_BYTES] SECTION("uaccel_device_constants");

static struct uaccel_account account;
static char failure[TEXT_BYTES];
static char log_line[TEXT_BYTES];

uint8_t *harness_shared(void);
uint8_t *harness_constants(void);
const char *harness_failure(void);
const char *harness_log(void);
uint32_t harness_calls(void);
uint64_t harness_cycles(void);
uint64_t harness_busy(void);
const char *harness_let_fail(const char *fault);

uint8_t *harness_shared(void)
{
    return shared;
}

uint8_t *harness_constants(void)
{
    return constants;
}

const char *harness_failure(void)
{
    return failure;
}

const char *harness_log(void)
{
    return log_line;
}

uint32_t harness_calls(void)
{
    return account.calls;
}

uint64_t harness_cycles(void)
{
    return account.cycles;
}

/* What the model says of itself. */
uint64_t harness_busy(void)
{
    return uaccel_rack[0].model->cycles(uaccel_rack[0].model->state);
}

/* The device as after power-on, nothing accounted; returns what is wrong with the text, or NULL. */
const char *harness_let_fail(const char *fault)
{
    uaccel_rack[0].fault = UACCEL_FAULT_NONE;
    const char *const wrong = uaccel_rack_let_fail(fault);
    uaccel_rack_reset();
    memset(&account, 0, sizeof account);
    failure[0] = '\0';
    log_line[0] = '\0';
    return wrong;
}

static void keep(char *to, const char *text)
{
    strncpy(to, text, TEXT_BYTES - 1);
}

void uaccel_account_layer(uint32_t layer)
{
    (void)layer;
}

void uaccel_account(uint32_t calls, uint64_t cycles)
{
    account.calls += calls;
    account.cycles += cycles;
}

void uaccel_account_failure(const char *text)
{
    keep(failure, text);
}

void uaccel_log(uint8_t level, const char *text)
{
    (void)level;
    keep(log_line, text);
}
