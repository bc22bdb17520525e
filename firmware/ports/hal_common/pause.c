/* Between two looks: nothing. Where a device can be slept for, other definitions take these ones' places. */
#include "pause.h"

__attribute__((weak)) uint32_t uaccel_hal_pause(const void *device)
{
    (void)device;
    return 1;
}

__attribute__((weak)) uint32_t uaccel_pause_until_interrupt(uint32_t irq)
{
    (void)irq;
    return 1;
}
