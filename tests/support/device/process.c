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
}
