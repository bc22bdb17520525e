/* Time from the memory-mapped mtime, or from the cycle counter. */
#include "core.h"
#include "uaccel_board.h"
#include "uaccel_port.h"

#ifdef UACCEL_BOARD_TIMER_MTIME

static uint32_t low_word(void)
{
    return UACCEL_REGISTER(UACCEL_BOARD_TIMER_BASE);
}

static uint32_t high_word(void)
{
    return UACCEL_REGISTER(UACCEL_BOARD_TIMER_BASE + 4u);
}

#elif defined(UACCEL_BOARD_TIMER_NONE)

static uint32_t low_word(void)
{
    return 0;
}

static uint32_t high_word(void)
{
    return 0;
}

#else

static uint32_t low_word(void)
{
    uint32_t value;
    __asm volatile("csrr %0, mcycle" : "=r"(value));
    return value;
}

static uint32_t high_word(void)
{
    uint32_t value;
    __asm volatile("csrr %0, mcycleh" : "=r"(value));
    return value;
}

#endif

UACCEL_PORT_UNCOUNTED uint64_t uaccel_port_ticks(void)
{
    uint32_t high;
    uint32_t low;
    do {
        high = high_word();
        low = low_word();
    } while (high != high_word());
    return (uint64_t)high << 32 | low;
}

uint32_t uaccel_port_ticks_per_second(void)
{
    return UACCEL_BOARD_TIMER_HZ;
}
