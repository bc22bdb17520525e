/* Which layer is under way: kept by the runtime, looked at by whoever runs devices beside it. */
#ifndef UACCEL_ACCOUNT_STATE_H
#define UACCEL_ACCOUNT_STATE_H

#include <stdint.h>

#include "uaccel_accelerator.h"

/* Of a failure's text, with the zero at its end. */
#define UACCEL_FAILURE_BYTES 80u

struct uaccel_account_state {
    uint32_t layer; /* all ones: nobody's. First: an emulator's plugin finds it by the symbol's address */
    uint32_t inferences;
    struct uaccel_account total;
    char failure[UACCEL_FAILURE_BYTES];
};

/* There is none in an application without the session server. */
extern struct uaccel_account_state uaccel_account_state;

#endif
