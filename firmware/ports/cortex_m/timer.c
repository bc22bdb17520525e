/* Time from SysTick: 24 bits of hardware, and an interrupt that counts how often they ran out. */
#include "core.h"
#include "uaccel_port.h"

#define SYST_CSR UACCEL_REGISTER(0xE000E010u)
#define SYST_RVR UACCEL_REGISTER(0xE000E014u)
#define SYST_CVR UACCEL_REGISTER(0xE000E018u)

#define CPU_CLOCK_INTERRUPT_ON 7u
#define PERIOD_BITS 24u
#define LONGEST 0xFFFFFFu

/* Ticks after which SysTick is started anew when it is read, so that what is measured from then on begins with a whole
 * tick: under an emulator whose clock nothing but instructions advances, the same work takes the same number of ticks
 * each time. It loses a few cycles, which is much less than a tick under such an emulator and little everywhere. */
#define RESTART_AFTER 1024u
#define RESTART_AFTER_WITH_LONG_TICKS 64u

static volatile uint32_t periods; /* since the last start */
static uint64_t until_start;      /* ticks */
static uint32_t restart_after = RESTART_AFTER;
static uint32_t ticks_per_second;

/* Whether a tick is longer than an instruction. */
static bool has_long_ticks(void)
{
    while (SYST_CVR == 0) { /* until the first tick */
    }
    const uint32_t first = SYST_CVR;
    const uint32_t second = SYST_CVR; /* a tick may lie between two readings, but not between each two */
    const uint32_t third = SYST_CVR;
    return first == second || second == third;
}

void uaccel_core_start_timer(uint32_t hz)
{
    ticks_per_second = hz;
    SYST_RVR = LONGEST;
    SYST_CVR = 0; /* any value clears it; the first tick loads LONGEST */
    SYST_CSR = CPU_CLOCK_INTERRUPT_ON;
    if (has_long_ticks()) {
        restart_after = RESTART_AFTER_WITH_LONG_TICKS;
    }
}

void uaccel_systick_interrupt(void);
UACCEL_PORT_UNCOUNTED void uaccel_systick_interrupt(void)
{
    periods++;
}

/* The interrupt comes as the counter arrives at 0, where it stays for a tick: whether it has been counted is not known
 * then, so that it is read again. */
static UACCEL_PORT_UNCOUNTED uint64_t since_start(void)
{
    uint32_t before;
    uint32_t left;
    do {
        before = periods;
        left = SYST_CVR;
        uaccel_core_barrier(); /* an interrupt that is pending is taken */
    } while (left == 0 || before != periods);
    return ((uint64_t)before << PERIOD_BITS) + (LONGEST + 1u - left);
}

UACCEL_PORT_UNCOUNTED uint64_t uaccel_port_ticks(void)
{
    if (ticks_per_second == 0) { /* not every Cortex-M0 has a SysTick */
        return 0;
    }
    const uint64_t now = until_start + since_start();
    if (now - until_start >= restart_after) {
        SYST_CVR = 0;
        uaccel_core_barrier();
        periods = 0;
        until_start = now;
    }
    return now;
}

uint32_t uaccel_port_ticks_per_second(void)
{
    return ticks_per_second;
}
