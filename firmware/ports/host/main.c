/* The firmware as a process: one session server on standard input and output, until the input ends. */
#define _POSIX_C_SOURCE 200809L

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "host.h"
#include "uaccel_port.h"
#include "uaccel_server.h"

uint8_t *host_stack;
char **host_arguments;
int host_input = STDIN_FILENO;
int host_output = STDOUT_FILENO;

/* Beyond the numbers that programs close by habit. */
enum { FIRST_PRIVATE = 100 };

/* A forked process must neither talk into the session nor keep its line open. */
static void leave_line(void)
{
    if (host_input != STDIN_FILENO) {
        close(host_input);
    }
    if (host_output != STDOUT_FILENO) {
        close(host_output);
    }
    host_input = host_output = -1;
}

/* Runs before constructors of device models in C++, which may print already. Where a number cannot be had, the line
   stays where it is. */
__attribute__((constructor(101))) static void take_line(void)
{
    const int input = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, FIRST_PRIVATE);
    const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, FIRST_PRIVATE);
    const int nothing = open("/dev/null", O_RDONLY);
    if (input >= 0 && nothing >= 0 && dup2(nothing, STDIN_FILENO) == STDIN_FILENO) {
        host_input = input;
    }
    if (output >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) == STDOUT_FILENO) {
        host_output = output;
    }
    if (nothing > STDERR_FILENO) {
        close(nothing);
    }
    pthread_atfork(NULL, NULL, leave_line);
}

static void *serve(void *unused)
{
    uaccel_port_init();
    uaccel_serve();
    return unused;
}

int main(int argc, char **argv)
{
    void *memory = NULL;
    pthread_attr_t attributes;
    pthread_t thread;
    (void)argc;
    host_arguments = argv;
    pthread_attr_init(&attributes);
    if (posix_memalign(&memory, 4096, HOST_STACK_BYTES) != 0 ||
        pthread_attr_setstack(&attributes, memory, HOST_STACK_BYTES) != 0) {
        fprintf(stderr, "firmware: no memory for a stack of %u bytes\n", HOST_STACK_BYTES);
        return HOST_FAULT;
    }
    host_stack = memory;
    if (pthread_create(&thread, &attributes, serve, NULL) != 0) {
        fprintf(stderr, "firmware: cannot start a thread\n");
        return HOST_FAULT;
    }
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attributes);
    free(memory);
    return 0;
}
