/* The firmware as a process: one session server on standard input and output, until the input ends. */
#define _POSIX_C_SOURCE 200809L

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "host.h"
#include "uaccel_port.h"
#include "uaccel_server.h"

uint8_t *host_stack;
char **host_arguments;

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
