/* The console is two rings in RAM, which a debug probe finds by the words at their head and reads and writes while the
 * core runs (SEGGER's Real Time Transfer). So there is no UART and no clock to set up.
 *
 * Each ring has one writer and one reader; offsets are words, so that neither sees half of one. */
#include "core.h"
#include "uaccel_board.h"
#include "uaccel_port.h"
#include "uart.h"

#ifndef UACCEL_RTT_UP_BYTES
#define UACCEL_RTT_UP_BYTES 1024
#endif
enum { ID_BYTES = 16 };

struct channel {
    const char *name;
    uint8_t *bytes;
    uint32_t size;
    volatile uint32_t written; /* where the next byte goes: the writer's */
    volatile uint32_t read;    /* where the next byte is taken: the reader's; both equal: empty */
    uint32_t flags;
};

struct control {
    volatile char id[ID_BYTES];
    int32_t up_channels;
    int32_t down_channels;
    struct channel up; /* to the host */
    struct channel down;
};

static uint8_t up_bytes[UACCEL_RTT_UP_BYTES];
static uint8_t down_bytes[UACCEL_PORT_RECEIVE_BYTES];

/* Debuggers know it by this name, too. */
extern struct control _SEGGER_RTT;
struct control _SEGGER_RTT;

/* What was stored before is there before what is stored from now on. */
static inline void barrier(void)
{
#ifdef __riscv
    __asm volatile("fence" ::: "memory");
#else
    __asm volatile("dmb" ::: "memory");
#endif
}

static uint32_t after(const struct channel *channel, uint32_t at)
{
    return at + 1u < channel->size ? at + 1u : 0u;
}

int32_t uaccel_port_read(uint8_t *to, uint32_t room)
{
    struct channel *const down = &_SEGGER_RTT.down;
    const uint32_t end = down->written;
    uint32_t at = down->read;
    uint32_t count = 0;
    barrier();
    while (at != end && end < down->size && count < room) {
        to[count] = ((volatile uint8_t *)down->bytes)[at];
        count++;
        at = after(down, at);
    }
    barrier();
    down->read = at;
    return (int32_t)count;
}

bool uaccel_port_has_arrived(void)
{
    return _SEGGER_RTT.down.written != _SEGGER_RTT.down.read;
}

void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    struct channel *const up = &_SEGGER_RTT.up;
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t at = up->written;
        const uint32_t next = after(up, at);
        while (up->read == next) { /* full, until the host has read */
        }
        ((volatile uint8_t *)up->bytes)[at] = from[i];
        barrier();
        up->written = next;
    }
}

/* For the fault reporter, which waits for somebody to ask. */
uint32_t uaccel_uart_get(void)
{
    uint8_t byte = 0;
    return uaccel_port_read(&byte, 1) == 1 ? byte : UACCEL_UART_NONE;
}

void uaccel_uart_receive_interrupt(bool on)
{
    (void)on;
}

/* The words at the head come last: until then nobody finds it. They stand here backwards, so that no copy of them is
 * found elsewhere. */
static void show(void)
{
    static const char backwards[] = "TTR REGGES";
    for (uint32_t i = 0; i < sizeof backwards - 1u; ++i) {
        _SEGGER_RTT.id[i] = backwards[sizeof backwards - 2u - i];
    }
}

void uaccel_port_init(void)
{
    _SEGGER_RTT.up_channels = 1;
    _SEGGER_RTT.down_channels = 1;
    _SEGGER_RTT.up = (struct channel){"uaccel", up_bytes, sizeof up_bytes, 0, 0, 2u}; /* waits where it is full */
    _SEGGER_RTT.down = (struct channel){"uaccel", down_bytes, sizeof down_bytes, 0, 0, 2u};
    barrier();
    show();
#ifdef UACCEL_BOARD_TIMER_SYSTICK
    uaccel_core_start_timer(UACCEL_BOARD_TIMER_HZ);
#endif
    uaccel_port_stack_paint();
}
