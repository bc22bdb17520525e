/* Sleeping until a device's interrupt is pending. It is never taken: pending is enough to wake the CPU, and whoever waits
 * looks at the device itself. So no handler is needed, and none can come at a bad time. */
#include "pause.h"

#include "core.h"
#include "uaccel_port.h"

#define NVIC_ISER(irq) UACCEL_REGISTER(0xE000E100u + (irq) / 32u * 4u)
#define NVIC_ICER(irq) UACCEL_REGISTER(0xE000E180u + (irq) / 32u * 4u)
#define NVIC_ICPR(irq) UACCEL_REGISTER(0xE000E280u + (irq) / 32u * 4u)

/* Ticks of SysTick, which runs with the CPU's clock, that a look at a device takes. */
#define TICKS_A_LOOK 16u

uint32_t uaccel_pause_until_interrupt(uint32_t irq)
{
    const uint32_t bit = 1u << irq % 32u;
    if (uaccel_port_ticks_per_second() == 0) {
        return 1; /* without SysTick nothing would end the sleep */
    }
    const uint64_t before = uaccel_port_ticks();
    uaccel_core_interrupts_off();
    NVIC_ISER(irq) = bit;
    uaccel_core_sleep();
    NVIC_ICER(irq) = bit;
    uaccel_core_barrier();
    NVIC_ICPR(irq) = bit; /* comes back by itself where the device still raises it */
    uaccel_core_interrupts_on();
    return 1u + (uint32_t)((uaccel_port_ticks() - before) / TICKS_A_LOOK);
}
