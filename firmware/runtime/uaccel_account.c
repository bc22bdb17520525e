/* The functions of uaccel_accelerator.h are here whatever the build: a driver may have been built with them. */
#ifndef UACCEL_ACCOUNTING
#define UACCEL_ACCOUNTING
#endif
#include "uaccel_account.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "uaccel_log.h"
#include "uaccel_model.h"

struct uaccel_account_state uaccel_account_state;

void uaccel_account_clear(void)
{
    memset(&uaccel_account_state, 0, sizeof uaccel_account_state);
    if (uaccel_model.accounts != NULL) {
        memset(uaccel_model.accounts, 0, uaccel_model.layer_count * sizeof *uaccel_model.accounts);
    }
}

void uaccel_account_begin(void)
{
    uaccel_account_state.inferences++;
    uaccel_account_state.layer = UINT32_MAX; /* nobody's, until generated code says whose */
    uaccel_account_state.failure[0] = '\0';
}

uint32_t uaccel_account_inferences(void)
{
    return uaccel_account_state.inferences;
}

struct uaccel_account uaccel_account_total(void)
{
    return uaccel_account_state.total;
}

const char *uaccel_account_failure_text(void)
{
    return uaccel_account_state.failure;
}

#ifdef UACCEL_OBSERVE

static uint32_t alignment; /* 0: any */
static bool misaligned;

void uaccel_account_alignment(uint32_t bytes)
{
    alignment = bytes;
    misaligned = false;
}

void uaccel_account_address(uintptr_t address)
{
    misaligned = misaligned || (alignment != 0 && address % alignment != 0);
}

int32_t uaccel_account_addresses(int32_t status)
{
    if (!misaligned) {
        return status;
    }
    uaccel_account_failure("the device was given an address that is no multiple of its alignment");
    return UACCEL_ACCELERATOR_ARGUMENT;
}

#endif

void uaccel_account_layer(uint32_t layer)
{
    uaccel_account_state.layer = layer;
#ifdef UACCEL_OBSERVE
    alignment = 0;
#endif
}

void uaccel_account(uint32_t calls, uint64_t cycles)
{
    uaccel_account_state.total.calls += calls;
    uaccel_account_state.total.cycles += cycles;
    if (uaccel_model.accounts != NULL && uaccel_account_state.layer < uaccel_model.layer_count) {
        uaccel_model.accounts[uaccel_account_state.layer].calls += calls;
        uaccel_model.accounts[uaccel_account_state.layer].cycles += cycles;
    }
}

void uaccel_account_fallback(uint32_t layer)
{
    const bool told = uaccel_account_state.failure[0] != '\0';
    uaccel_log(UACCEL_LOG_WARNING, told ? uaccel_account_state.failure : "an accelerator failed");
    uaccel_account_state.failure[0] = '\0';
    uaccel_account_state.total.fallbacks++;
    if (uaccel_model.accounts != NULL && layer < uaccel_model.layer_count) {
        uaccel_model.accounts[layer].fallbacks++;
    }
}

void uaccel_account_failure(const char *text)
{
    strncpy(uaccel_account_state.failure, text, sizeof uaccel_account_state.failure - 1); /* the last byte stays zero */
}
