/* The console: a UART with a receive interrupt and a ring buffer.
 *
 * When the ring is full the interrupt is switched off, and uaccel_port_read switches it on again. So nothing is lost
 * where the line can wait, as under an emulator; where it cannot, the UART notices the overrun itself. */
#include "core.h"
#include "receive_ring.h"
#include "uaccel_board.h"
#include "uaccel_port.h"
#include "uart.h"

#ifdef UACCEL_BOARD_CONSOLE_IRQ /* other consoles are the port's own */

static struct uaccel_ring ring;
static volatile bool paused;

UACCEL_PORT_UNCOUNTED void uaccel_console_receive(void)
{
    while (uaccel_ring_has_room(&ring)) {
        const uint32_t got = uaccel_uart_get();
        if ((got & UACCEL_UART_NONE) == 0) {
            uaccel_ring_put(&ring, (uint8_t)got);
        }
        if ((got & UACCEL_UART_LOST) != 0) {
            uaccel_ring_lost(&ring);
        }
        if ((got & UACCEL_UART_NONE) != 0) {
            return;
        }
    }
    paused = true;
    uaccel_uart_receive_interrupt(false);
}

/* Interrupts are off between looking and sleeping, or one that comes in between would be slept over; a pending one ends
 * the sleep nevertheless. */
static void sleep_while_empty(void)
{
    uaccel_core_interrupts_off();
    if (uaccel_ring_is_empty(&ring)) {
        uaccel_core_sleep();
    }
    uaccel_core_interrupts_on();
}

static void resume(void)
{
    uaccel_core_interrupts_off();
    paused = false;
    uaccel_uart_receive_interrupt(true);
    uaccel_console_receive(); /* not every UART asks again for the byte that has waited */
    uaccel_core_interrupts_on();
}

int32_t uaccel_port_read(uint8_t *to, uint32_t room)
{
    if (uaccel_ring_is_empty(&ring)) {
        sleep_while_empty();
    }
    const int32_t count = uaccel_ring_take(&ring, to, room);
    if (paused && uaccel_ring_has_room(&ring)) {
        resume();
    }
    return count;
}

bool uaccel_port_has_arrived(void)
{
    return !uaccel_ring_is_empty(&ring);
}

void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        uaccel_uart_put(from[i]);
    }
}

#endif
