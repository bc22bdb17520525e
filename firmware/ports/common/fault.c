/* The end of the road: say what happened, then say it again to whoever asks. */
#include "core.h"
#include "uaccel_port.h"
#include "uart.h"

/* Linked where there is a session server. */
__attribute__((weak)) void uaccel_server_fault(const char *text);

static void say(const char *text)
{
    if (uaccel_server_fault != 0) {
        uaccel_server_fault(text);
        return;
    }
    uint32_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    uaccel_port_write((const uint8_t *)"\r\nfault: ", 9);
    uaccel_port_write((const uint8_t *)text, length);
    uaccel_port_write((const uint8_t *)"\r\n", 2);
}

/* Wait for the end of a line or of a frame: someone has connected after the fault, and waits for an answer. */
static void wait_for_question(void)
{
    uint32_t got;
    do {
        got = uaccel_uart_get();
    } while ((got & UACCEL_UART_NONE) != 0 || ((uint8_t)got != 0 && (uint8_t)got != '\n'));
}

void uaccel_port_fault(const char *text)
{
    uaccel_core_interrupts_off();
    uaccel_uart_receive_interrupt(false);
    for (;;) {
        say(text);
        wait_for_question();
    }
}
