/* Standard output of an ATmega2560 without a core: UART 0. The CPU stops when main returns. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>
#include <stdio.h>

static int put(char byte, FILE *unused)
{
    (void)unused;
    while ((UCSR0A & (1 << UDRE0)) == 0) {
    }
    UDR0 = (uint8_t)byte;
    return 0;
}

static FILE console = FDEV_SETUP_STREAM(put, NULL, _FDEV_SETUP_WRITE);

__attribute__((constructor)) static void open_console(void)
{
    UCSR0B = 1 << TXEN0;
    stdout = &console;
}

__attribute__((destructor)) static void stop(void)
{
    while ((UCSR0A & (1 << UDRE0)) == 0) {
    }
    cli();
    sleep_mode();
}
