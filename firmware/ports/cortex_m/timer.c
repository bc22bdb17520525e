/* Time from SysTick: 24 bits of hardware, and an interrupt that counts how often they ran out. */
#include "core.h"
#include "uaccel_port.h"

#define SYST_CSR UACCEL_REGISTER(0xE000E010u)
#define SYST_RVR UACCEL_REGISTER(0xE000E014u)
#define SYST_CVR UACCEL_REGISTER(0xE000E018u)

#define PERIOD_BITS 24u
#define LONGEST 0xFFFFFFu

static volatile uint32_t periods;
static uint32_t ticks_per_second;

void uaccel_core_start_timer(uint32_t hz)
{
    ticks_per_second = hz;
    SYST_RVR = LONGEST;
    SYST_CVR = 0;
    SYST_CSR = 7; /* clock of the CPU, interrupt, on */
}

void uaccel_systick_interrupt(void);
UACCEL_PORT_UNCOUNTED void uaccel_systick_interrupt(void)
{
    periods++;
}

UACCEL_PORT_UNCOUNTED uint64_t uaccel_port_ticks(void)
{
    static uint64_t last;
    uint32_t before;
    uint32_t left;
    do {
        before = periods;
        left = SYST_CVR;
    } while (before != periods);
    uint64_t now = (uint64_t)before << PERIOD_BITS | (LONGEST - left);
    if (now < last) { /* the counter has started again, its interrupt is yet to come */
        now += (uint64_t)1 << PERIOD_BITS;
    }
    last = now;
    return now;
}

uint32_t uaccel_port_ticks_per_second(void)
{
    return ticks_per_second;
}
