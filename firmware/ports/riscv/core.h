/* What every RV32 core in machine mode has, and how ports use it. */
#ifndef UACCEL_RISCV_CORE_H
#define UACCEL_RISCV_CORE_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_port.h"

#define UACCEL_REGISTER(address) (*(volatile uint32_t *)(uintptr_t)(address))

/* Called by startup.S before main(): the guard below the stack. */
void uaccel_core_init(void);

/* A port's, for what cannot wait for uaccel_port_init: to turn off a watchdog that runs from reset on. The usual one,
 * which is weak, does nothing. Variables have no values yet: it may use its stack and registers alone. */
void uaccel_port_early_init(void);

/* The machine's external interrupt: a port serves its controller here, and calls uaccel_console_receive.
 * UACCEL_PORT_UNCOUNTED. */
void uaccel_external_interrupt(void);

/* Whether an instruction was answered that the core has not; `frame` is startup.S's. UACCEL_PORT_UNCOUNTED. */
bool uaccel_undefined_instruction(uint32_t *frame);

/* What uaccel_port_instructions returns without an emulator's help: minstret, where it counts instructions. (QEMU shows
 * its computer's clock there, unless it runs with -icount.) */
uint64_t uaccel_core_instructions(void);

/* Let the external interrupt come. */
static inline void uaccel_core_enable_interrupt(void)
{
    __asm volatile("csrs mie, %0" ::"r"(1u << 11) : "memory");
}

/* Sleep until an interrupt is pending. With interrupts off it is not served, so that nothing is missed between looking
 * and sleeping. */
static inline void uaccel_core_sleep(void)
{
    __asm volatile("wfi" ::: "memory");
}

static inline uintptr_t uaccel_core_stack_pointer(void)
{
    uintptr_t value;
    __asm volatile("mv %0, sp" : "=r"(value));
    return value;
}

static inline void uaccel_core_interrupts_off(void)
{
    __asm volatile("csrci mstatus, 8" ::: "memory");
}

static inline void uaccel_core_interrupts_on(void)
{
    __asm volatile("csrsi mstatus, 8" ::: "memory");
}

#endif
