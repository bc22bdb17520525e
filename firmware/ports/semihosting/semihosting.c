/* The console is the debugger's: the core stops at a trap, and the debugger, or an emulator, does what the registers
 * ask for. So there is no UART and no clock to set up. Without a debugger the first trap is a fault. */
#include <stddef.h>

#include "core.h"
#include "uaccel_board.h"
#include "uaccel_port.h"
#include "uart.h"

enum { WRITE_BYTE = 3, WRITE_TEXT = 4, READ_BYTE = 7, TEXT_BYTES = 64 };

#ifdef __riscv
/* The three instructions are told from a breakpoint by their neighbours; they must have 32 bits each and lie in one
 * page. */
#define TRAP                                                                                                           \
    ".option push\n\t.option norvc\n\t.balign 16\n\t"                                                                  \
    "slli zero, zero, 0x1f\n\tebreak\n\tsrai zero, zero, 7\n\t.option pop"
#define BELOW_STACK "sb %2, -1(sp)\n\t" TRAP "\n\tlbu %1, -1(sp)"
#define LOW "r"
#define RESULT "a0"
#define ARGUMENT "a1"
#else
#define TRAP "bkpt 0xab"
#define BELOW_STACK ".syntax unified\n\tmov %1, sp\n\tsubs %1, #1\n\tstrb %2, [%1]\n\t" TRAP "\n\tldrb %1, [%1]"
#define LOW "l"
#define RESULT "r0"
#define ARGUMENT "r1"
#endif

static void ask(uintptr_t operation, const void *what)
{
    register uintptr_t first __asm(RESULT) = operation;
    register const void *second __asm(ARGUMENT) = what;
    __asm volatile(TRAP : "+r"(first) : "r"(second) : "memory");
}

/* QEMU 7 puts the byte just below the stack and then returns what lay there before. So a mark is laid there: where it
 * is gone, the byte stands in its place. Elsewhere nobody touches it. Interrupts are off, or they would. */
static uintptr_t read_byte(void)
{
    register uintptr_t result __asm(RESULT) = READ_BYTE;
    register uintptr_t argument __asm(ARGUMENT) = 0;
    const uint32_t mark = 0xA6u;
    uint32_t below;
    uaccel_core_interrupts_off();
    __asm volatile(BELOW_STACK : "+r"(result), "=&" LOW(below) : LOW(mark), "r"(argument) : "memory", "cc");
    uaccel_core_interrupts_on();
    return below != mark ? below : result;
}

/* Waits until there is a byte. More of them are not asked for: that could wait for one that nobody sends. */
int32_t uaccel_port_read(uint8_t *to, uint32_t room)
{
    if (room == 0) {
        return 0;
    }
    const uintptr_t got = read_byte();
    if (got > UINT8_MAX) {
        return UACCEL_PORT_CLOSED;
    }
    *to = (uint8_t)got;
    return 1;
}

/* There is no way to ask. */
bool uaccel_port_has_arrived(void)
{
    return false;
}

/* What holds no zero goes in one piece: each takes the debugger a while. */
void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    uint8_t text[TEXT_BYTES];
    uint32_t length = 0;
    for (uint32_t i = 0; i < count; ++i) {
        text[length] = from[i];
        length += from[i] != 0 ? 1u : 0u;
        if (length > 0 && (from[i] == 0 || i + 1u == count || length + 1u == TEXT_BYTES)) {
            text[length] = 0;
            ask(WRITE_TEXT, text);
            length = 0;
        }
        if (from[i] == 0) {
            ask(WRITE_BYTE, &from[i]);
        }
    }
}

/* For the fault reporter, which waits for somebody to ask. */
uint32_t uaccel_uart_get(void)
{
    uint8_t byte = 0;
    return uaccel_port_read(&byte, 1) == 1 ? byte : UACCEL_UART_NONE;
}

void uaccel_uart_receive_interrupt(bool on)
{
    (void)on;
}

void uaccel_port_init(void)
{
#ifdef UACCEL_BOARD_TIMER_SYSTICK
    uaccel_core_start_timer(UACCEL_BOARD_TIMER_HZ);
#endif
    uaccel_port_stack_paint();
}
