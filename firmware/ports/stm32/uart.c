/* STM32F4 and STM32F7: the console is one of the USARTs. */
#include "uart.h"

#include "stm32.h"
#include "uaccel_board.h"
#include "uaccel_port.h"

#if UACCEL_BOARD_FAMILY == 4
struct usart {
    uint32_t status;
    uint32_t data;
    uint32_t baud;
    uint32_t control;
};
#define RECEIVED(usart) ((usart)->data)
#define TRANSMIT(usart) ((usart)->data)
#define CLEAR_OVERRUN(usart) ((void)(usart)->data) /* having read the status */
enum { CONTROL_ON = 1 << 13 };
#elif UACCEL_BOARD_FAMILY == 7
struct usart {
    uint32_t control;
    uint32_t control_2_and_3[2];
    uint32_t baud;
    uint32_t unused[3];
    uint32_t status;
    uint32_t clear;
    uint32_t receive_data;
    uint32_t transmit_data;
};
#define RECEIVED(usart) ((usart)->receive_data)
#define TRANSMIT(usart) ((usart)->transmit_data)
#define CLEAR_OVERRUN(usart) ((usart)->clear = STATUS_OVERRUN)
enum { CONTROL_ON = 1 << 0 };
#else
#error "this port knows families 4 (STM32F4) and 7 (STM32F7); 'uaccel new board NAME --target CHIP' needs no port"
#endif

#define IS(address) (UACCEL_BOARD_CONSOLE_BASE == address)
#if !(IS(0x40004400u) || IS(0x40004800u) || IS(0x40004C00u) || IS(0x40005000u) || IS(0x40007800u) || IS(0x40007C00u) || \
      IS(0x40011000u) || IS(0x40011400u))
#error "[console] base: this port knows USART1, 2, 3 and 6 and UART4, 5, 7 and 8"
#endif

enum {
    STATUS_OVERRUN = 1 << 3,
    STATUS_RECEIVED = 1 << 5,
    STATUS_TRANSMIT_EMPTY = 1 << 7,
    CONTROL_RECEIVE = 1 << 2,
    CONTROL_TRANSMIT = 1 << 3,
    CONTROL_RECEIVE_INTERRUPT = 1 << 5
};

static volatile struct usart *const usart = (volatile struct usart *)UACCEL_BOARD_CONSOLE_BASE;
static struct uaccel_clocks clocks;

void uaccel_uart_receive_interrupt(bool on)
{
    usart->control = (uint32_t)CONTROL_ON | CONTROL_RECEIVE | CONTROL_TRANSMIT | (on ? CONTROL_RECEIVE_INTERRUPT : 0u);
}

UACCEL_PORT_UNCOUNTED uint32_t uaccel_uart_get(void)
{
    const uint32_t status = usart->status;
    uint32_t got = (status & STATUS_RECEIVED) != 0 ? RECEIVED(usart) & 0xFFu : UACCEL_UART_NONE;
    if ((status & STATUS_OVERRUN) != 0) {
        CLEAR_OVERRUN(usart);
        got |= UACCEL_UART_LOST;
    }
    return got;
}

void uaccel_uart_put(uint8_t byte)
{
    while ((usart->status & STATUS_TRANSMIT_EMPTY) == 0) {
    }
    TRANSMIT(usart) = byte;
}

/* "PC6" to alternate function `function`; that it is a pin, port.toml sees to. */
static void set_up_pin(const char *name, uint32_t function)
{
    const uint32_t port = (uint32_t)name[1] - (uint32_t)'A';
    uint32_t pin = 0;
    for (uint32_t i = 2; name[i] != '\0'; ++i) {
        pin = pin * 10u + ((uint32_t)name[i] - (uint32_t)'0');
    }
    const uint32_t gpio = 0x40020000u + port * 0x400u;
    volatile uint32_t *const mode = &UACCEL_REGISTER(gpio);
    volatile uint32_t *const pull = &UACCEL_REGISTER(gpio + 0x0Cu);
    volatile uint32_t *const alternate = &UACCEL_REGISTER(gpio + 0x20u + pin / 8u * 4u);
    RCC_AHB1ENR |= 1u << port;
    *alternate = (*alternate & ~(15u << pin % 8u * 4u)) | function << pin % 8u * 4u;
    *pull = (*pull & ~(3u << pin * 2u)) | 1u << pin * 2u;
    *mode = (*mode & ~(3u << pin * 2u)) | 2u << pin * 2u;
}

/* Switch the USART on: its clock's frequency. */
static uint32_t start_usart_clock(uint32_t base)
{
    switch (base) {
    case 0x40011000u: /* USART1 */
        RCC_APB2ENR |= 1u << 4;
        return clocks.apb2;
    case 0x40011400u: /* USART6 */
        RCC_APB2ENR |= 1u << 5;
        return clocks.apb2;
    case 0x40007800u: /* UART7 */
    case 0x40007C00u: /* UART8 */
        RCC_APB1ENR |= 1u << (30u + (base >> 10 & 1u));
        return clocks.apb1;
    default: /* USART2, USART3, UART4, UART5 */
        RCC_APB1ENR |= 1u << (17u + (base - 0x40004400u) / 0x400u);
        return clocks.apb1;
    }
}

static uint32_t pin_function(uint32_t base)
{
    const bool first_three = base == 0x40011000u || base == 0x40004400u || base == 0x40004800u;
    return first_three ? 7u : 8u;
}

void uaccel_port_init(void)
{
    clocks = uaccel_stm32_start_clocks();
    const uint32_t clock = start_usart_clock(UACCEL_BOARD_CONSOLE_BASE);
    set_up_pin(UACCEL_BOARD_TX, pin_function(UACCEL_BOARD_CONSOLE_BASE));
    set_up_pin(UACCEL_BOARD_RX, pin_function(UACCEL_BOARD_CONSOLE_BASE));
    usart->baud = (clock + UACCEL_BOARD_CONSOLE_BAUD / 2u) / UACCEL_BOARD_CONSOLE_BAUD;
    uaccel_uart_receive_interrupt(true);
    uaccel_core_enable_interrupt(UACCEL_BOARD_CONSOLE_IRQ);
    uaccel_core_start_timer(clocks.cpu);
    uaccel_port_stack_paint();
}
