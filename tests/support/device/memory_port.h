/* A port whose line is two arrays; for tests that are one source file. Whoever includes it provides uaccel_port_reset
 * and uaccel_port_fault, if they are called. */
#ifndef UACCEL_TESTS_MEMORY_PORT_H
#define UACCEL_TESTS_MEMORY_PORT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "uaccel_port.h"

#ifndef QUEUE_BYTES
#define QUEUE_BYTES (1u << 20)
#endif

struct queue {
    uint32_t used;
    uint8_t bytes[QUEUE_BYTES];
};

static struct queue arrived; /* what the server has not read begins at `taken` */
static uint32_t taken;
static struct queue sent;
static struct queue *port_writes_to = &sent;
static bool overrun; /* tell the server once that bytes were lost */
static bool closed;  /* no more will arrive */
static bool counts_instructions = true;
static uint64_t ticks;

int32_t uaccel_port_read(uint8_t *to, uint32_t room)
{
    const uint32_t waiting = arrived.used - taken;
    const uint32_t bytes = waiting < room ? waiting : room;
    if (overrun) {
        overrun = false;
        return UACCEL_PORT_OVERRUN;
    }
    if (bytes == 0 && closed) {
        return UACCEL_PORT_CLOSED;
    }
    memcpy(to, arrived.bytes + taken, bytes);
    taken += bytes;
    return (int32_t)bytes;
}

bool uaccel_port_has_arrived(void)
{
    return overrun || closed || taken < arrived.used;
}

/* What does not fit is lost, as on any line that nobody reads. */
void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    const uint32_t room = QUEUE_BYTES - port_writes_to->used;
    const uint32_t bytes = count < room ? count : room;
    memcpy(port_writes_to->bytes + port_writes_to->used, from, bytes);
    port_writes_to->used += bytes;
}

uint64_t uaccel_port_ticks(void)
{
    return ticks;
}

uint32_t uaccel_port_ticks_per_second(void)
{
    return 1000;
}

uint64_t uaccel_port_instructions(void)
{
    return counts_instructions ? ticks * 100u : UACCEL_PORT_NO_COUNT;
}

void uaccel_port_stack_paint(void)
{
}

uint32_t uaccel_port_stack_used(void)
{
    return 321;
}

#endif
