/* What a board port provides, and all that the session server and the runtime ask of a board.
 *
 * A port lies in firmware/ports/<family>; docs/boards.md tells how one is written. Every function may be called from
 * main() after uaccel_port_init; none but uaccel_port_fault may be called from an interrupt. */
#ifndef UACCEL_PORT_H
#define UACCEL_PORT_H

#include <stdbool.h>
#include <stdint.h>

/* What uaccel_port_read returns when there will be no more bytes: the line is closed (a process whose stdin ended). */
#define UACCEL_PORT_CLOSED (-1)
/* Bytes arrived faster than they were read and were lost. Told once for each loss, before the bytes that came after
 * it: whatever was being received is incomplete. */
#define UACCEL_PORT_OVERRUN (-2)

/* What uaccel_port_instructions returns where the board cannot count. */
#define UACCEL_PORT_NO_COUNT UINT64_MAX

/* How many bytes can lie in the port between two calls of uaccel_port_read: what a client may have under way. A port
 * for a slow line needs less; a board file cannot change it, the build can (-DUACCEL_PORT_RECEIVE_BYTES=n, a power
 * of two). */
#ifndef UACCEL_PORT_RECEIVE_BYTES
#define UACCEL_PORT_RECEIVE_BYTES 4096
#endif

/* Clocks, console with its receive interrupt, timer. Called once, first thing in main(); the FPU and Helium are on
 * before that, and the stack is painted. */
void uaccel_port_init(void);

/* Take up to `room` bytes that have arrived. Returns how many (0: none), UACCEL_PORT_CLOSED or UACCEL_PORT_OVERRUN.
 *
 * Call it when there is nothing else to do: where nothing has arrived the CPU sleeps, until the next byte or any other
 * interrupt, before 0 is returned. Under an emulator this decides the speed of the console: who polls without sleeping
 * takes the emulator's time away from the line. */
int32_t uaccel_port_read(uint8_t *to, uint32_t room);

/* Whether uaccel_port_read has something to tell at once: bytes, a loss, the end. Never waits. */
bool uaccel_port_has_arrived(void);

/* Send `count` bytes; returns when the last one is on its way. */
void uaccel_port_write(const uint8_t *from, uint32_t count);

/* Time since some moment before uaccel_port_init, in ticks that never go back. */
uint64_t uaccel_port_ticks(void);

/* 0 where the board has no timer (uaccel_port_ticks returns 0 as well). */
uint32_t uaccel_port_ticks_per_second(void);

/* For functions that measure or serve interrupts: what they execute is not counted by uaccel_port_instructions under an
 * emulator. Not for functions that the measured code calls to do its work. */
#ifdef __ELF__
#define UACCEL_PORT_UNCOUNTED __attribute__((noinline, section(".text.uaccel_uncounted")))
#else
#define UACCEL_PORT_UNCOUNTED
#endif

/* Instructions retired since some moment, exact: the same work between two calls gives the same difference each time,
 * whatever interrupts came meanwhile.
 * UACCEL_PORT_NO_COUNT where the board cannot count. */
uint64_t uaccel_port_instructions(void);

/* Paint the free part of the stack, and later: the most bytes of stack in use at any time since, counted from the
 * caller of uaccel_port_stack_paint. */
void uaccel_port_stack_paint(void);
uint32_t uaccel_port_stack_used(void);

/* Restart the firmware as after power-on. Does not return. */
void uaccel_port_reset(void);

/* Report what cannot be survived, and stop until a reset. `text` is one line of ASCII without a newline. Called by the
 * port's fault handlers, and by whoever finds a state that cannot be. Does not return. */
void uaccel_port_fault(const char *text);

/* Provided by the session server: sends `text` over uaccel_port_write in the form that the other end understands,
 * with a stack that may be nearly full and memory that may be damaged. Where no server is linked the port sends the
 * text as it is, as a line of its own. */
void uaccel_server_fault(const char *text);

#endif
