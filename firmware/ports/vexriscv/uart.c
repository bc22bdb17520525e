/* The machine of firmware/simulator, and of examples/ulx3s: a UART that needs no setting, interrupts in VexRiscv's own
 * registers, and a register that resets it. */
#include "uart.h"

#include "core.h"
#include "uaccel_board.h"
#include "uaccel_port.h"

struct uart {
    uint32_t data; /* reading takes a byte, or UACCEL_UART_NONE */
    uint32_t receive_interrupt;
};

enum { RESET = 0x7777 };

static volatile struct uart *const uart = (volatile struct uart *)UACCEL_BOARD_CONSOLE_BASE;

void uaccel_uart_receive_interrupt(bool on)
{
    uart->receive_interrupt = on;
}

UACCEL_PORT_UNCOUNTED uint32_t uaccel_uart_get(void)
{
    return uart->data;
}

void uaccel_uart_put(uint8_t byte)
{
    uart->data = byte;
}

UACCEL_PORT_UNCOUNTED void uaccel_external_interrupt(void)
{
    uaccel_console_receive();
}

/* Register 0xBC0 lets interrupts come; its highest bit switches custom instructions on. */
void uaccel_port_init(void)
{
    uaccel_uart_receive_interrupt(true);
    __asm volatile("csrw 0xBC0, %0" ::"r"(1u << 31 | 1u << UACCEL_BOARD_CONSOLE_IRQ));
    uaccel_core_enable_interrupt();
    uaccel_port_stack_paint();
}

void uaccel_port_reset(void)
{
    uaccel_core_interrupts_off();
    UACCEL_REGISTER(UACCEL_BOARD_RESET_BASE) = RESET;
    for (;;) {
    }
}
