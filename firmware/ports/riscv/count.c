/* Instructions retired, as the CPU itself counts them: exact, but for interrupts that come meanwhile. A simulated machine
 * tells them exactly: its counter leaves out what measures and what serves interrupts. */
#include <stdbool.h>

#include "core.h"
#include "uaccel_board.h"
#include "uaccel_port.h"

#if defined(UACCEL_BOARD_COUNTER_BASE) && UACCEL_BOARD_COUNTER_BASE != 0

/* Reading the lower word holds the upper one. */
UACCEL_PORT_UNCOUNTED uint64_t uaccel_core_instructions(void)
{
    const uint32_t low = UACCEL_REGISTER(UACCEL_BOARD_COUNTER_BASE);
    return (uint64_t)UACCEL_REGISTER(UACCEL_BOARD_COUNTER_BASE + 4u) << 32 | low;
}

#else

static UACCEL_PORT_UNCOUNTED uint64_t minstret(void)
{
    uint32_t high;
    uint32_t low;
    uint32_t high_after;
    do {
        __asm volatile("csrr %0, minstreth\n\tcsrr %1, minstret\n\tcsrr %2, minstreth"
                       : "=r"(high), "=r"(low), "=r"(high_after));
    } while (high != high_after);
    return (uint64_t)high << 32 | low;
}

/* Whether readings one behind another tell one instruction each. */
static UACCEL_PORT_UNCOUNTED bool counts_instructions(void)
{
    uint32_t first;
    uint32_t second;
    uint32_t third;
    __asm volatile("csrr %0, minstret\n\tcsrr %1, minstret\n\tcsrr %2, minstret"
                   : "=r"(first), "=r"(second), "=r"(third));
    return second - first == 1u && third - second == 1u;
}

UACCEL_PORT_UNCOUNTED uint64_t uaccel_core_instructions(void)
{
    static enum { UNKNOWN, NO, YES } can;
    if (can == UNKNOWN) {
        can = counts_instructions() ? YES : NO;
    }
    return can == YES ? minstret() : UACCEL_PORT_NO_COUNT;
}

#endif
