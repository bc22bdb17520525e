/* The accounts of uaccel_accelerator.h, as the session server reads them. */
#ifndef UACCEL_ACCOUNT_H
#define UACCEL_ACCOUNT_H

#include <stdint.h>

#include "uaccel_account_state.h"

/* A session begins: everything is zero again. */
void uaccel_account_clear(void);

/* An inference begins. */
void uaccel_account_begin(void);

/* How often the model was run since the session began, and what accelerators did in all of its layers. */
uint32_t uaccel_account_inferences(void);
struct uaccel_account uaccel_account_total(void);

/* What a driver said of the last inference; empty where none has failed in it. */
const char *uaccel_account_failure_text(void);

#endif
