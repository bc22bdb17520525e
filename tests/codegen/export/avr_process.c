/* An ATmega2560 as a process: simavr executes the firmware, and its UART 0 is standard output and, unless a second
 * argument is given, standard input, with whose end it ends. */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <simavr/avr_uart.h>
#include <simavr/sim_avr.h>
#include <simavr/sim_elf.h>

/* Steps of the CPU between two looks at standard input. */
enum { STEPS = 2000 };

static avr_irq_t *to_uart;
static int may_send = 1;

static void sent(struct avr_irq_t *irq, uint32_t value, void *unused)
{
    const unsigned char byte = (unsigned char)value;
    (void)irq;
    (void)unused;
    if (write(STDOUT_FILENO, &byte, 1) != 1) {
        exit(EXIT_FAILURE);
    }
}

static void flow(struct avr_irq_t *irq, uint32_t value, void *on)
{
    (void)irq;
    (void)value;
    may_send = on != NULL;
}

/* Returns whether there may be more. */
static int hand_over(void)
{
    struct pollfd line = {STDIN_FILENO, POLLIN, 0};
    while (may_send && poll(&line, 1, 0) > 0) {
        unsigned char byte;
        if (read(STDIN_FILENO, &byte, 1) != 1) {
            return 0;
        }
        avr_raise_irq(to_uart, byte);
    }
    return 1;
}

static avr_t *loaded(const char *path)
{
    static elf_firmware_t firmware;
    uint32_t flags = 0;
    avr_t *const avr = avr_make_mcu_by_name("atmega2560");
    if (avr == NULL || elf_read_firmware(path, &firmware) != 0) {
        fprintf(stderr, "%s: cannot be loaded\n", path);
        exit(EXIT_FAILURE);
    }
    avr_init(avr);
    avr->frequency = 16000000;
    avr->log = LOG_ERROR;
    avr_load_firmware(avr, &firmware);
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= (uint32_t)~(AVR_UART_FLAG_STDIO | AVR_UART_FLAG_POLL_SLEEP);
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    return avr;
}

int main(int argc, char **argv)
{
    static char on;
    avr_t *const avr = loaded(argc > 1 ? argv[1] : "");
    to_uart = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), sent, NULL);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XON), flow, &on);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUT_XOFF), flow, NULL);
    for (int state = cpu_Running; argc > 2 || hand_over();) {
        for (int i = 0; i < STEPS; ++i) {
            state = avr_run(avr);
            if (state == cpu_Done || state == cpu_Crashed) {
                return state == cpu_Done ? EXIT_SUCCESS : EXIT_FAILURE;
            }
        }
    }
    return EXIT_SUCCESS;
}
