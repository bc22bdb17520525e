/* What every Cortex-M has: its system registers, and how ports use them. */
#ifndef UACCEL_CORTEX_M_CORE_H
#define UACCEL_CORTEX_M_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_port.h"

#define UACCEL_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* Called by startup.S before main(): vectors, separate fault handlers, a guard below the stack. */
void uaccel_core_init(void);

/* A port's, for what cannot wait for uaccel_port_init: to turn off a watchdog that runs from reset on. The usual one,
 * which is weak, does nothing. Variables have no values yet: it may use its stack and registers alone. */
void uaccel_port_early_init(void);

/* Let external interrupt `irq` come: the console's, which common/console.c serves. */
void uaccel_core_enable_interrupt(uint32_t irq);

/* Start SysTick at `hz`, the clock of the CPU. */
void uaccel_core_start_timer(uint32_t hz);

/* All stores have arrived, all instructions from here on are fetched anew. */
static inline void uaccel_core_barrier(void)
{
    __asm volatile("dsb\n\tisb" ::: "memory");
}

/* Sleep until an interrupt is pending. With interrupts off it is not served, so that nothing is missed between looking
 * and sleeping. */
static inline void uaccel_core_sleep(void)
{
    __asm volatile("dsb\n\twfi" ::: "memory");
}

static inline uintptr_t uaccel_core_stack_pointer(void)
{
    uintptr_t value;
    __asm volatile("mov %0, sp" : "=r"(value));
    return value;
}

static inline void uaccel_core_interrupts_off(void)
{
    __asm volatile("cpsid i" ::: "memory");
}

static inline void uaccel_core_interrupts_on(void)
{
    __asm volatile("cpsie i\n\tisb" ::: "memory");
}

/* What uaccel_port_instructions returns without an emulator's help: no Cortex-M counts instructions. */
static inline uint64_t uaccel_core_instructions(void)
{
    return UACCEL_PORT_NO_COUNT;
}

#endif
