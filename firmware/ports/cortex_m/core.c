#include "core.h"

#include "uaccel_board.h"
#include "uaccel_port.h"
#include "uart.h"

#define NVIC_ISER0 0xE000E100u
#define SCB_ICSR UACCEL_REGISTER(0xE000ED04u)
#define SCB_VTOR UACCEL_REGISTER(0xE000ED08u)
#define SCB_AIRCR UACCEL_REGISTER(0xE000ED0Cu)
#define SCB_CCR UACCEL_REGISTER(0xE000ED14u)
#define SCB_SHCSR UACCEL_REGISTER(0xE000ED24u)
#define MPU_TYPE UACCEL_REGISTER(0xE000ED90u)
#define MPU_CTRL UACCEL_REGISTER(0xE000ED94u)
#define MPU_RNR UACCEL_REGISTER(0xE000ED98u)
#define MPU_RBAR UACCEL_REGISTER(0xE000ED9Cu)
#define MPU_RASR UACCEL_REGISTER(0xE000EDA0u)

enum {
    ICSR_VECTOR = 0x1FF,
    CCR_DIVIDE_BY_ZERO_TRAP = 1 << 4,
    CCR_BRANCH_CACHE_LOOPS = 1 << 19, /* ARMv8.1-M: low-overhead loops in hardware */
    SHCSR_FAULTS = 7 << 16,           /* memory management, bus and usage faults come as themselves */
    SHCSR_SECURE_FAULT = 1 << 19,
    MPU_ON_WITH_DEFAULT_MAP = 5,
    MPU_REGION_128_BYTES_NO_ACCESS = 6 << 1 | 1
};

extern uint32_t uaccel_vectors[];
extern uint32_t uaccel_stack_guard[]; /* just below the stack */

#if __ARM_ARCH == 7
/* A store just below the stack is a fault, not a silently changed variable. ARMv8-M has stack limits instead. */
static void guard_stack(void)
{
    if ((MPU_TYPE >> 8 & 0xFFu) == 0) {
        return;
    }
    MPU_RNR = 0;
    MPU_RBAR = (uint32_t)(uintptr_t)uaccel_stack_guard;
    MPU_RASR = MPU_REGION_128_BYTES_NO_ACCESS;
    MPU_CTRL = MPU_ON_WITH_DEFAULT_MAP;
    uaccel_core_barrier();
}
#endif

void uaccel_core_init(void)
{
#if __ARM_ARCH >= 7
    SCB_VTOR = (uint32_t)(uintptr_t)uaccel_vectors;
    SCB_CCR |= CCR_DIVIDE_BY_ZERO_TRAP;
    SCB_SHCSR |= SHCSR_FAULTS;
#endif
#if __ARM_ARCH == 7
    guard_stack();
#endif
#if __ARM_ARCH >= 8
    SCB_SHCSR |= SHCSR_SECURE_FAULT;
    SCB_CCR |= CCR_BRANCH_CACHE_LOOPS;
#endif
    uaccel_core_interrupts_on();
}

void uaccel_core_enable_interrupt(uint32_t irq)
{
    UACCEL_REGISTER(NVIC_ISER0 + irq / 32u * 4u) = 1u << irq % 32u;
}

void uaccel_external_interrupt(void);
UACCEL_PORT_UNCOUNTED void uaccel_external_interrupt(void)
{
#ifdef UACCEL_BOARD_CONSOLE_IRQ
    if ((SCB_ICSR & ICSR_VECTOR) == UACCEL_BOARD_CONSOLE_IRQ + 16u) {
        uaccel_console_receive();
        return;
    }
#endif
    uaccel_port_fault("an interrupt came that nobody has asked for");
}

void uaccel_port_reset(void)
{
    uaccel_core_barrier();
    SCB_AIRCR = 0x05FA0004u; /* SYSRESETREQ */
    uaccel_core_barrier();
    for (;;) {
    }
}
