/* The functions of uaccel_accelerator.h are here whatever the build: a driver may have been built with them. */
#ifndef UACCEL_ACCOUNTING
#define UACCEL_ACCOUNTING
#endif
#include "uaccel_account.h"

#include <stddef.h>
#include <string.h>

#include "uaccel_log.h"
#include "uaccel_model.h"

static struct {
    uint32_t inferences;
    uint32_t layer;
    struct uaccel_account total;
    char failure[UACCEL_FAILURE_BYTES];
} account;

void uaccel_account_clear(void)
{
    memset(&account, 0, sizeof account);
    if (uaccel_model.accounts != NULL) {
        memset(uaccel_model.accounts, 0, uaccel_model.layer_count * sizeof *uaccel_model.accounts);
    }
}

void uaccel_account_begin(void)
{
    account.inferences++;
    account.layer = UINT32_MAX; /* nobody's, until generated code says whose */
    account.failure[0] = '\0';
}

uint32_t uaccel_account_inferences(void)
{
    return account.inferences;
}

struct uaccel_account uaccel_account_total(void)
{
    return account.total;
}

const char *uaccel_account_failure_text(void)
{
    return account.failure;
}

void uaccel_account_layer(uint32_t layer)
{
    account.layer = layer;
}

void uaccel_account(uint32_t calls, uint64_t cycles)
{
    account.total.calls += calls;
    account.total.cycles += cycles;
    if (uaccel_model.accounts != NULL && account.layer < uaccel_model.layer_count) {
        uaccel_model.accounts[account.layer].calls += calls;
        uaccel_model.accounts[account.layer].cycles += cycles;
    }
}

void uaccel_account_fallback(uint32_t layer)
{
    uaccel_log(UACCEL_LOG_WARNING, account.failure[0] != '\0' ? account.failure : "an accelerator failed");
    account.failure[0] = '\0';
    account.total.fallbacks++;
    if (uaccel_model.accounts != NULL && layer < uaccel_model.layer_count) {
        uaccel_model.accounts[layer].fallbacks++;
    }
}

void uaccel_account_failure(const char *text)
{
    strncpy(account.failure, text, sizeof account.failure - 1); /* the last byte stays zero */
}
