/* The session server in a test's own process: its port is two queues in memory, its clock is the test's. */
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include "device_model.h"
#include "memory_port.h"
#include "uaccel_log.h"
#include "uaccel_server.h"

static uint32_t resets;
static uint32_t runs;
static uint32_t computed_at = UINT32_MAX; /* bytes sent when the model last began; UINT32_MAX: it did not */
static jmp_buf after_reset;

void uaccel_port_reset(void)
{
    resets++;
    longjmp(after_reset, 1);
}

void uaccel_port_fault(const char *text)
{
    uaccel_server_fault(text);
}

void device_computes(void)
{
    computed_at = sent.used;
    ticks += 7;
    runs++;
}

void device_power_on(void);
void device_overrun(void);
void device_log(uint8_t level, const char *text);
int32_t device_step(const uint8_t *from, uint32_t bytes);
uint32_t device_take(uint8_t *to);
uint32_t device_computed_at(void);
uint32_t device_resets(void);
uint32_t device_runs(void);

void device_power_on(void)
{
    arrived.used = 0;
    taken = 0;
    overrun = false;
    memset(device_wave, 0, sizeof device_wave);
    memset(device_weights, 0, sizeof device_weights);
    memset(device_mask, 0, sizeof device_mask);
    memset(device_sums, 0, sizeof device_sums);
    uaccel_server_start();
}

void device_overrun(void)
{
    overrun = true;
}

void device_log(uint8_t level, const char *text)
{
    uaccel_log(level, text);
}

/* These bytes arrive, and the server takes them. */
int32_t device_step(const uint8_t *from, uint32_t bytes)
{
    if (setjmp(after_reset) != 0) {
        device_power_on();
        return 0;
    }
    arrived.used = bytes;
    taken = 0;
    memcpy(arrived.bytes, from, bytes);
    do {
        const int32_t status = uaccel_server_poll();
        if (status != 0) {
            return status;
        }
    } while (overrun || taken < arrived.used);
    return 0;
}

/* What it has sent since; returns how much. */
uint32_t device_take(uint8_t *to)
{
    const uint32_t bytes = sent.used;
    memcpy(to, sent.bytes, bytes);
    sent.used = 0;
    return bytes;
}

/* How much of that it had sent when the model last began, once. */
uint32_t device_computed_at(void)
{
    const uint32_t at = computed_at;
    computed_at = UINT32_MAX;
    return at;
}

uint32_t device_resets(void)
{
    return resets;
}

/* How often the model has run. */
uint32_t device_runs(void)
{
    return runs;
}
