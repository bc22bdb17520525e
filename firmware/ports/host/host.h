/* What main.c and port.c share. */
#ifndef UACCEL_HOST_H
#define UACCEL_HOST_H

#include <stdint.h>

/* Exit statuses of the process; 0: the line was closed. */
enum { HOST_FAULT = 1, HOST_LINE_LOST = 2 };

/* The stack that everything runs on: memory of our own, so that it can be painted and looked at. */
#define HOST_STACK_BYTES (1u << 20)
extern uint8_t *host_stack;

/* The session's line: standard input and output as the process got them, under numbers that nobody else knows; -1 in a
   process that was forked off. What code of device models reads is empty, and what it prints goes to standard error. */
extern int host_input, host_output;

/* As main got them. */
extern char **host_arguments;

#endif
