/* Firmware that waits for hardware of its board: a timer of Arm's FPGA boards, which QEMU has too, stands for an
 * accelerator. It says '!', and answers requests of a letter and two numbers with a status and the instructions that
 * waiting took:
 *   i N P   start the timer for N ticks (0: not at all), wait for it at most P looks, asleep
 *   p N P   the same, polling
 *   m       what looking for a device of another name gives: 0 for NULL
 *   c       whether the timer is what its identity says it is
 *   e N     bytes that arrived meanwhile, N of them */
#include "uaccel_hal.h"
#include "uaccel_port.h"

enum { CTRL = 0x00, VALUE = 0x04, RELOAD = 0x08, INTERRUPT = 0x0C, IDENTITY = 0xFF0 };
enum { ENABLE = 1, INTERRUPT_ENABLE = 8 };

static void receive(uint8_t *to, uint32_t count)
{
    for (uint32_t got = 0; got < count;) {
        const int32_t more = uaccel_port_read(to + got, count - got);
        got += more > 0 ? (uint32_t)more : 0;
    }
}

static uint32_t receive_number(void)
{
    uint8_t bytes[4];
    receive(bytes, sizeof bytes);
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static void send(uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; ++i) {
        const uint8_t byte = (uint8_t)(value >> 8 * i & 0xFFu);
        uaccel_port_write(&byte, 1);
    }
}

static void wait(const char *name, uint32_t ticks, uint32_t polls)
{
    void *const timer = uaccel_hal_device(name);
    uaccel_hal_write32(timer, CTRL, 0);
    uaccel_hal_write32(timer, INTERRUPT, 1);
    uaccel_hal_write32(timer, RELOAD, ticks);
    uaccel_hal_write32(timer, VALUE, ticks);
    const uint64_t before = uaccel_port_instructions();
    uaccel_hal_write32(timer, CTRL, ticks == 0 ? 0 : ENABLE | INTERRUPT_ENABLE);
    const int32_t status = uaccel_hal_wait(timer, INTERRUPT, 1, 1, polls);
    const uint64_t after = uaccel_port_instructions();
    uaccel_hal_write32(timer, CTRL, 0);
    uaccel_hal_write32(timer, INTERRUPT, 1);
    send((uint32_t)status, 4);
    send(after - before, 8);
}

static void echo(uint32_t count)
{
    while (count-- > 0) {
        uint8_t byte;
        receive(&byte, 1);
        uaccel_port_write(&byte, 1);
    }
}

int main(void)
{
    uaccel_port_init();
    uaccel_port_write((const uint8_t *)"!", 1);
    for (;;) {
        uint8_t letter;
        receive(&letter, 1);
        const uint32_t first = receive_number();
        const uint32_t second = receive_number();
        if (letter == 'i' || letter == 'p') {
            wait(letter == 'i' ? "timer" : "polled", first, second);
        } else if (letter == 'm') {
            send(uaccel_hal_device("tim") == 0 ? 0 : 1, 4);
        } else if (letter == 'c') {
            void *const timer = uaccel_hal_device("timer");
            send((uint32_t)uaccel_hal_check(timer, IDENTITY, 0x0D, UACCEL_ACCELERATOR_IDENTITY), 4);
            send((uint32_t)uaccel_hal_check(timer, IDENTITY, 0x0E, UACCEL_ACCELERATOR_IDENTITY), 4);
            send(uaccel_hal_address(&letter) - (uint32_t)(uintptr_t)&letter, 4);
        } else {
            echo(first);
        }
    }
}
