/* What a board's UART driver provides; common/console.c makes the console of it, with its ring buffer. */
#ifndef UACCEL_UART_H
#define UACCEL_UART_H

#include <stdbool.h>
#include <stdint.h>

/* What uaccel_uart_get returns beside a byte. */
#define UACCEL_UART_NONE 0x100u /* nothing has arrived: no byte */
#define UACCEL_UART_LOST 0x200u /* the UART has lost bytes, behind the byte if there is one */

/* Take a byte if there is one; never waits. UACCEL_PORT_UNCOUNTED: the interrupt calls it. */
uint32_t uaccel_uart_get(void);

/* Send a byte; waits until the UART takes it. */
void uaccel_uart_put(uint8_t byte);

/* Whether an arrived byte asks for an interrupt; with false none comes any more, not even one that is pending. */
void uaccel_uart_receive_interrupt(bool on);

/* Provided by common/console.c, called by the interrupt: takes all that has arrived. */
void uaccel_console_receive(void);

#endif
