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

struct meaning {
    uint32_t bit; /* of CFSR */
    const char *text;
};

static const struct meaning meanings[] = {
    {20, "stack overflow"},
    {0, "no code at that address"},
    {1, "access to memory that must not be touched"},
    {3, "stack unreadable at the end of an exception"},
    {4, "stack overflow"},
    {5, "stack overflow while saving FPU registers"},
    {8, "no code at that address"},
    {9, "access to an address where there is nothing"},
    {10, "an earlier store went to an address where there is nothing"},
    {11, "stack unreadable at the end of an exception"},
    {12, "stack overflow"},
    {13, "stack overflow while saving FPU registers"},
    {16, "undefined instruction"},
    {17, "jump to an address that is no Thumb code"},
    {18, "bad return from an exception"},
    {19, "FPU or coprocessor instruction, and it is not there or off"},
    {24, "unaligned access"},
    {25, "division by zero"},
};

static const char *exception_name(uint32_t number)
{
    static const char *const names[] = {"NMI", "hard fault", "memory fault", "bus fault", "usage fault", "secure fault"};
    return number >= 2u && number <= 7u ? names[number - 2u] : "unexpected exception";
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
    for (uint32_t i = 0; i < sizeof meanings / sizeof meanings[0]; ++i) {
        if ((status >> meanings[i].bit & 1u) != 0) {
            return meanings[i].text;
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
        uaccel_report_hex(&report, "pc", frame[PC]);
        uaccel_report_hex(&report, "lr", frame[LR]);
        uaccel_report_hex(&report, "psr", frame[PSR]);
        uaccel_report_hex(&report, "r0", frame[R0]);
        uaccel_report_hex(&report, "r1", frame[R1]);
        uaccel_report_hex(&report, "r2", frame[R2]);
        uaccel_report_hex(&report, "r3", frame[R3]);
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
