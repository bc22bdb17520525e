/* The test model as a process of this computer, on the host port; the environment variable DEVICE_DOES says what it
 * does instead of computing. */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "device_model.h"
#include "uaccel_log.h"
#include "uaccel_port.h"

/* What a device model may do to the process that it lives in, which is not its own; then it goes on. */
static void odd(const char *what)
{
    if (strcmp(what, "print") == 0) {
        printf("a job\n");
        fflush(stdout);
    }
    if (strcmp(what, "read") == 0) {
        getchar();
    }
    if (strcmp(what, "close") == 0) {
        fclose(stdout);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
    }
    if (strcmp(what, "start") == 0 && system("echo started; sleep 60 &") != 0) {
        exit(4);
    }
    if (strncmp(what, "fork", 4) == 0 && fork() == 0) {
        if (strcmp(what, "fork and sleep") == 0) {
            sleep(60);
        }
        if (strcmp(what, "fork and print") == 0) {
            printf("a child\n");
            fflush(stdout);
            _exit(0);
        }
        /* "fork": the child goes on with what the parent does, too. */
    }
}

void device_computes(void)
{
    const char *const what = getenv("DEVICE_DOES");
    if (what == NULL) {
        return;
    }
    if (strcmp(what, "crash") == 0) {
        raise(SIGSEGV);
    }
    if (strcmp(what, "exit") == 0) {
        fprintf(stderr, "I give up\nfor good\n");
        exit(3);
    }
    if (strcmp(what, "fault") == 0) {
        uaccel_port_fault("usage fault at 0x00000042");
    }
    if (strcmp(what, "hang") == 0) {
        pause();
    }
    if (strcmp(what, "log") == 0) {
        uaccel_log(UACCEL_LOG_ERROR, "computing");
    }
    if (strcmp(what, "sleep") == 0) {
        sleep(1);
    }
    odd(what);
}
