/* The `virt` machine of QEMU and boards like it: a 16550 UART behind a PLIC, and a register that resets the machine. */
#include "uart.h"

#include "core.h"
#include "uaccel_board.h"
#include "uaccel_port.h"

struct uart {
    uint8_t data; /* the divisor's low byte while LINE_DIVISOR is set */
    uint8_t interrupts;
    uint8_t fifo;
    uint8_t line;
    uint8_t modem;
    uint8_t status;
};

enum {
    INTERRUPT_RECEIVE = 1 << 0,
    FIFO_ON_AND_EMPTY = 7,
    LINE_8_BITS = 3,
    LINE_DIVISOR = 1 << 7,
    STATUS_RECEIVED = 1 << 0,
    STATUS_OVERRUN = 1 << 1, /* reading clears it */
    STATUS_TRANSMIT_EMPTY = 1 << 5
};

/* The PLIC, for hart 0 in machine mode. */
#define PLIC_PRIORITY(irq) UACCEL_REGISTER(UACCEL_BOARD_PLIC_BASE + 4u * (irq))
#define PLIC_ENABLE(irq) UACCEL_REGISTER(UACCEL_BOARD_PLIC_BASE + 0x2000u + (irq) / 32u * 4u)
#define PLIC_THRESHOLD UACCEL_REGISTER(UACCEL_BOARD_PLIC_BASE + 0x200000u)
#define PLIC_CLAIM UACCEL_REGISTER(UACCEL_BOARD_PLIC_BASE + 0x200004u)

enum { RESET = 0x7777 };

static volatile struct uart *const uart = (volatile struct uart *)UACCEL_BOARD_CONSOLE_BASE;

void uaccel_uart_receive_interrupt(bool on)
{
    uart->interrupts = on ? INTERRUPT_RECEIVE : 0;
}

UACCEL_PORT_UNCOUNTED uint32_t uaccel_uart_get(void)
{
    const uint32_t status = uart->status;
    const uint32_t got = (status & STATUS_RECEIVED) != 0 ? uart->data : UACCEL_UART_NONE;
    return (status & STATUS_OVERRUN) != 0 ? got | UACCEL_UART_LOST : got;
}

void uaccel_uart_put(uint8_t byte)
{
    while ((uart->status & STATUS_TRANSMIT_EMPTY) == 0) {
    }
    uart->data = byte;
}

UACCEL_PORT_UNCOUNTED void uaccel_external_interrupt(void)
{
    const uint32_t irq = PLIC_CLAIM;
    if (irq == UACCEL_BOARD_CONSOLE_IRQ) {
        uaccel_console_receive();
    } else if (irq != 0) {
        uaccel_port_fault("an interrupt came that nobody has asked for");
    }
    PLIC_CLAIM = irq;
}

static void start_uart(void)
{
    const uint32_t divisor = UACCEL_BOARD_CONSOLE_CLOCK_HZ / (16u * UACCEL_BOARD_CONSOLE_BAUD);
    uart->line = LINE_DIVISOR;
    uart->data = (uint8_t)(divisor & 0xFFu);
    uart->interrupts = (uint8_t)(divisor >> 8 & 0xFFu);
    uart->line = LINE_8_BITS;
    uart->fifo = FIFO_ON_AND_EMPTY;
    uaccel_uart_receive_interrupt(true);
}

void uaccel_port_init(void)
{
    start_uart();
    PLIC_PRIORITY(UACCEL_BOARD_CONSOLE_IRQ) = 1;
    PLIC_ENABLE(UACCEL_BOARD_CONSOLE_IRQ) |= 1u << UACCEL_BOARD_CONSOLE_IRQ % 32u;
    PLIC_THRESHOLD = 0;
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
