/* Arm's MPS2 and MPS3 FPGA boards: the console is a UART of the Cortex-M System Design Kit (CMSDK). */
#include "uart.h"

#include "core.h"
#include "uaccel_board.h"
#include "uaccel_port.h"

struct uart {
    uint32_t data;
    uint32_t state;
    uint32_t control;
    uint32_t interrupt; /* write ones to clear */
    uint32_t baud_divider;
};

enum {
    STATE_TRANSMIT_FULL = 1 << 0,
    STATE_RECEIVE_FULL = 1 << 1,
    STATE_RECEIVE_OVERRUN = 1 << 3, /* write one to clear */
    CONTROL_TRANSMIT = 1 << 0,
    CONTROL_RECEIVE = 1 << 1,
    CONTROL_RECEIVE_INTERRUPT = 1 << 3,
    INTERRUPT_RECEIVE = 1 << 1
};

static volatile struct uart *const uart = (volatile struct uart *)UACCEL_BOARD_CONSOLE_BASE;

void uaccel_uart_receive_interrupt(bool on)
{
    uart->control = CONTROL_TRANSMIT | CONTROL_RECEIVE | (on ? CONTROL_RECEIVE_INTERRUPT : 0u);
    if (!on) {
        uart->interrupt = INTERRUPT_RECEIVE; /* one that is pending would come even so */
    }
}

UACCEL_PORT_UNCOUNTED uint32_t uaccel_uart_get(void)
{
    uart->interrupt = INTERRUPT_RECEIVE; /* before looking: a byte that comes from now on asks for the next one */
    const uint32_t state = uart->state;
    uint32_t got = UACCEL_UART_NONE;
    if ((state & STATE_RECEIVE_FULL) != 0) {
        got = uart->data & 0xFFu;
    }
    if ((state & STATE_RECEIVE_OVERRUN) != 0) {
        uart->state = STATE_RECEIVE_OVERRUN;
        got |= UACCEL_UART_LOST;
    }
    return got;
}

void uaccel_uart_put(uint8_t byte)
{
    while ((uart->state & STATE_TRANSMIT_FULL) != 0) {
    }
    uart->data = byte;
}

void uaccel_port_init(void)
{
    uart->baud_divider = UACCEL_BOARD_CONSOLE_CLOCK_HZ / UACCEL_BOARD_CONSOLE_BAUD;
    uaccel_uart_receive_interrupt(true);
    uaccel_core_enable_interrupt(UACCEL_BOARD_CONSOLE_IRQ);
    uaccel_core_start_timer(UACCEL_BOARD_TIMER_HZ);
    uaccel_port_stack_paint();
}
