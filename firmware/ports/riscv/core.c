#include "core.h"

#include <stdbool.h>

#include "report.h"
#include "uaccel_port.h"

enum { GUARD_BYTES = 128, PMP_NAPOT = 3 << 3, PMP_LOCKED = 1 << 7 };
enum { RA, A0, A1, A2, A3 }; /* of the frame that startup.S leaves */
enum { UNDEFINED_INSTRUCTION = 2 };

extern uint32_t uaccel_stack_guard[]; /* just below the stack */
extern uint32_t uaccel_stack_bottom[];
extern uint32_t uaccel_stack_top[];

/* A store just below the stack is a fault, not a silently changed variable: no access, not even for machine mode. A core
 * without a PMP traps, and goes on behind it. */
void uaccel_core_init(void)
{
    const uint32_t address = (uint32_t)(uintptr_t)uaccel_stack_guard >> 2 | (GUARD_BYTES / 8u - 1u);
    const uint32_t mode = PMP_LOCKED | PMP_NAPOT;
    uint32_t vector;
    __asm volatile("la %0, 1f\n\tcsrrw %0, mtvec, %0\n\t"
                   "csrw pmpaddr0, %1\n\tcsrw pmpcfg0, %2\n\t"
                   ".balign 64\n1:\tcsrw mtvec, %0"
                   : "=&r"(vector)
                   : "r"(address), "r"(mode)
                   : "memory");
    uaccel_core_interrupts_on();
}

/* A port with an interrupt controller has its own. */
__attribute__((weak)) UACCEL_PORT_UNCOUNTED void uaccel_external_interrupt(void)
{
    uaccel_port_fault("an interrupt came that nobody has asked for");
}

/* Where nothing resets the chip: begin again. Start-up sets all anew that this firmware uses. */
void uaccel_reset(void);
__attribute__((weak)) void uaccel_port_reset(void)
{
    uaccel_core_interrupts_off();
    uaccel_reset();
    for (;;) {
    }
}

static const char *cause_name(uint32_t cause)
{
    static const char *const names[] = {
        "jump to an odd address",        "no code at that address",
        "undefined instruction",         "breakpoint",
        "unaligned load",                "load from an address where there is nothing",
        "unaligned store",               "store to an address where there is nothing",
    };
    return cause < sizeof names / sizeof names[0] ? names[cause] : "unexpected exception";
}

static void report_fault(uint32_t cause, const uint32_t *frame)
{
    static struct uaccel_report report;
    uint32_t pc;
    uint32_t value;
    uint32_t sp;
    __asm volatile("csrr %0, mepc" : "=r"(pc));
    __asm volatile("csrr %0, mtval" : "=r"(value));
    __asm volatile("csrr %0, mscratch" : "=r"(sp));
    const bool overflow = sp < (uint32_t)(uintptr_t)uaccel_stack_bottom || sp > (uint32_t)(uintptr_t)uaccel_stack_top;
    report.used = 0;
    uaccel_report_text(&report, "trap: ");
    uaccel_report_text(&report, overflow ? "stack overflow" : cause_name(cause));
    uaccel_report_hex(&report, "pc", pc);
    uaccel_report_hex(&report, "ra", frame[RA]);
    uaccel_report_hex(&report, "sp", sp);
    uaccel_report_hex(&report, "a0", frame[A0]);
    uaccel_report_hex(&report, "a1", frame[A1]);
    uaccel_report_hex(&report, "a2", frame[A2]);
    uaccel_report_hex(&report, "a3", frame[A3]);
    uaccel_report_hex(&report, "mcause", cause);
    uaccel_report_hex(&report, "mtval", value);
    uaccel_port_fault(report.text);
}

#ifdef UACCEL_INSTRUCTIONS
/* A port whose core may lack an instruction answers in its place. */
__attribute__((weak)) UACCEL_PORT_UNCOUNTED bool uaccel_undefined_instruction(uint32_t *frame)
{
    (void)frame;
    return false;
}
#endif

void uaccel_handle_trap(uint32_t cause, uint32_t *frame);
UACCEL_PORT_UNCOUNTED void uaccel_handle_trap(uint32_t cause, uint32_t *frame)
{
    if (cause == (0x80000000u | 11u)) {
        uaccel_external_interrupt();
#ifdef UACCEL_INSTRUCTIONS
    } else if (cause == UNDEFINED_INSTRUCTION && uaccel_undefined_instruction(frame)) {
        return;
#endif
    } else {
        report_fault(cause, frame);
    }
}
