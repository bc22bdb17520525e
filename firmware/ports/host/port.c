/* This computer as a board: the line is standard input and output, be it a pipe, a terminal or a socket (main.c). */
#define _POSIX_C_SOURCE 200809L

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "host.h"
#include "uaccel_port.h"

/* What painting itself takes of the stack, at most: variables, and what a compiler keeps below the stack pointer. */
#define OWN_FRAME 256u
#define PAINT UINT64_C(0xA5A5A5A5A5A5A5A5)

enum { NANOSECONDS = 1000000000 };

/* A line that ends while the firmware writes must not kill the process: devices close their files when it exits. */
void uaccel_port_init(void)
{
    (void)signal(SIGPIPE, SIG_IGN);
}

/* Sleeps until something arrives: nothing else happens in this process. */
int32_t uaccel_port_read(uint8_t *to, uint32_t room)
{
    ssize_t got = 0;
    do {
        got = read(host_input, to, room);
    } while (got < 0 && errno == EINTR);
    return got > 0 ? (int32_t)got : UACCEL_PORT_CLOSED;
}

bool uaccel_port_has_arrived(void)
{
    struct pollfd line = {host_input, POLLIN, 0};
    return poll(&line, 1, 0) > 0;
}

void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    while (count > 0) {
        const ssize_t sent = write(host_output, from, count);
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

/* Stacks grow down on every computer that has a C compiler of this century. */
static uint64_t *painted_end; /* the paint's near end */
static uintptr_t caller;      /* its frame */

__attribute__((noinline)) void uaccel_port_stack_paint(void)
{
    /* No calls and no memset: what those take of the stack would count. */
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    caller = here;
    painted_end = (uint64_t *)(void *)host_stack;
    if (here > (uintptr_t)host_stack + OWN_FRAME && here <= (uintptr_t)host_stack + HOST_STACK_BYTES) {
        painted_end += (here - OWN_FRAME - (uintptr_t)host_stack) / sizeof *painted_end;
    }
    for (volatile uint64_t *word = (uint64_t *)(void *)host_stack; word < painted_end; ++word) {
        *word = PAINT;
    }
}

uint32_t uaccel_port_stack_used(void)
{
    const uint64_t *word = (const uint64_t *)(void *)host_stack;
    while (word < painted_end && *word == PAINT) {
        ++word;
    }
    return (uint32_t)(caller - (uintptr_t)word);
}

/* The program that follows takes its line from where this one got it. */
void uaccel_port_reset(void)
{
    dup2(host_input, STDIN_FILENO);
    dup2(host_output, STDOUT_FILENO);
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
