/* What a fault says: which one, why, where, and the registers that the exception saved. */
#include "core.h"
#include "report.h"
#include "uaccel_port.h"

#define SCB_ICSR UACCEL_REGISTER(0xE000ED04u)
#define SCB_CFSR UACCEL_REGISTER(0xE000ED28u)
#define SCB_HFSR UACCEL_REGISTER(0xE000ED2Cu)
#define SCB_MMFAR UACCEL_REGISTER(0xE000ED34u)
#define SCB_BFAR UACCEL_REGISTER(0xE000ED38u)

enum { CFSR_MMFAR_VALID = 1 << 7, CFSR_BFAR_VALID = 1 << 15 };
enum { R0, R1, R2, R3, R12, LR, PC, PSR, FRAME_WORDS };

extern uint32_t uaccel_stack_bottom[];
extern uint32_t uaccel_stack_top[];
extern uint32_t uaccel_interrupt_stack_bottom[];
extern uint32_t uaccel_interrupt_stack_top[];

/* Of each bit of CFSR that has a meaning: its number, and what it says. Those of the memory fault's byte and of the bus
 * fault's lie eight apart: 32 is that of the first bit of either. */
static const char meanings[] =
    "\024stack overflow\0"
    "\020undefined instruction\0"
    "\021jump to no Thumb code\0"
    "\022bad return from an exception\0"
    "\023FPU or coprocessor missing or off\0"
    "\030unaligned access\0"
    "\031division by zero\0"
    "\001access to forbidden memory\0"
    "\011access where there is nothing\0"
    "\012an earlier store where there is nothing\0"
    "\040no code at that address\0"
    "\043stack unreadable after an exception\0"
    "\044stack overflow\0"
    "\045stack overflow while saving FPU registers\0";

static const char *next_text(const char *text)
{
    while (*text++ != '\0') {
    }
    return text;
}

static const char *exception_name(uint32_t number)
{
    static const char names[] =
        "unexpected exception\0NMI\0hard fault\0memory fault\0bus fault\0usage fault\0secure fault";
    const char *name = names;
    for (uint32_t i = number >= 2u && number <= 7u ? number - 1u : 0u; i > 0u; --i) {
        name = next_text(name);
    }
    return name;
}

/* Whether an exception's frame can be read: a stack that ran over has left none. */
static bool is_in_a_stack(const uint32_t *frame)
{
    return (frame >= uaccel_stack_bottom && frame + FRAME_WORDS <= uaccel_stack_top) ||
           (frame >= uaccel_interrupt_stack_bottom && frame + FRAME_WORDS <= uaccel_interrupt_stack_top);
}

static const char *cause(uint32_t status, bool stack_is_sound)
{
    if (!stack_is_sound) {
        return "stack overflow";
    }
    for (const char *text = meanings; *text != '\0'; text = next_text(text)) {
        const uint32_t bit = (uint8_t)*text, bits = bit < 32u ? 1u << bit : 0x101u << (bit - 32u);
        if ((status & bits) != 0) {
            return text + 1;
        }
    }
    return "cause unknown";
}

void uaccel_report_fault(const uint32_t *frame, uint32_t exc_return);
void uaccel_report_fault(const uint32_t *frame, uint32_t exc_return)
{
    static struct uaccel_report report;
    const bool sound = is_in_a_stack(frame);
#if __ARM_ARCH >= 7
    const uint32_t status = SCB_CFSR;
#else
    const uint32_t status = 0;
#endif
    report.used = 0;
    uaccel_report_text(&report, exception_name(SCB_ICSR & 0x1FFu));
    uaccel_report_text(&report, ": ");
    uaccel_report_text(&report, cause(status, sound));
    if (sound) {
        static const char names[] = "pc\0lr\0psr\0r0\0r1\0r2\0r3";
        static const uint8_t places[] = {PC, LR, PSR, R0, R1, R2, R3};
        const char *name = names;
        for (uint32_t i = 0; i < sizeof places; ++i) {
            uaccel_report_hex(&report, name, frame[places[i]]);
            name = next_text(name);
        }
    }
    uaccel_report_hex(&report, "sp", (uint32_t)(uintptr_t)frame);
    uaccel_report_hex(&report, "exc_return", exc_return);
#if __ARM_ARCH >= 7
    uaccel_report_hex(&report, "cfsr", status);
    uaccel_report_hex(&report, "hfsr", SCB_HFSR);
    if ((status & (CFSR_MMFAR_VALID | CFSR_BFAR_VALID)) != 0) {
        uaccel_report_hex(&report, "address", (status & CFSR_MMFAR_VALID) != 0 ? SCB_MMFAR : SCB_BFAR);
    }
#endif
    uaccel_port_fault(report.text);
}
