/* This computer as a board: the line is standard input and output, be it a pipe, a terminal or a socket. */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "uaccel_port.h"

/* What the painting itself and the call of memset take of the stack, at most. */
#define PAINT_GUARD 512u
#define PAINT 0xA5

enum { NANOSECONDS = 1000000000 };

void uaccel_port_init(void)
{
    /* The process has all that it needs. */
}

/* Sleeps until something arrives: nothing else happens in this process. */
int32_t uaccel_port_read(uint8_t *to, uint32_t room)
{
    ssize_t got = 0;
    do {
        got = read(STDIN_FILENO, to, room);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? (int32_t)got : UACCEL_PORT_CLOSED;
}

void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    while (count > 0) {
        const ssize_t sent = write(STDOUT_FILENO, from, count);
        if (sent < 0 && errno != EINTR) {
            perror("firmware: standard output");
            exit(HOST_LINE_LOST);
        }
        if (sent > 0) {
            from += sent;
            count -= (uint32_t)sent;
        }
    }
}

uint64_t uaccel_port_ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NANOSECONDS + (uint64_t)now.tv_nsec;
}

uint32_t uaccel_port_ticks_per_second(void)
{
    return NANOSECONDS;
}

uint64_t uaccel_port_instructions(void)
{
    return UACCEL_PORT_NO_COUNT;
}

static uint32_t painted; /* bytes, from the stack's far end on */

/* Stacks grow down on every computer that has a C compiler of this century. */
void uaccel_port_stack_paint(void)
{
    uint8_t here = 0;
    const uintptr_t below = (uintptr_t)&here - (uintptr_t)host_stack;
    painted = below > PAINT_GUARD && below < HOST_STACK_BYTES ? (uint32_t)below - PAINT_GUARD : 0;
    memset(host_stack, PAINT, painted);
}

uint32_t uaccel_port_stack_used(void)
{
    uint32_t clean = 0;
    while (clean < painted && host_stack[clean] == PAINT) {
        ++clean;
    }
    return painted - clean + PAINT_GUARD;
}

void uaccel_port_reset(void)
{
    execv(host_arguments[0], host_arguments);
    perror("firmware: cannot start again");
    exit(HOST_FAULT);
}

void uaccel_port_fault(const char *text)
{
    fprintf(stderr, "firmware: %s\n", text);
    uaccel_server_fault(text);
    exit(HOST_FAULT);
}
