/* What generated code and an accelerator's driver tell of their work: how often the accelerator was called, how many
 * cycles it took, and why it failed.
 *
 * Off by default, when it costs nothing and needs nothing. Firmware projects build with UACCEL_ACCOUNTING defined:
 * their session server provides the functions and tells the host. A product leaves it out, or provides its own. */
#ifndef UACCEL_ACCELERATOR_H
#define UACCEL_ACCELERATOR_H

#include <stdint.h>

/* What a driver's functions return: 0 when all is well. Codes of a vendor's own begin at UACCEL_ACCELERATOR_OWN, or
 * are below 0. */
enum uaccel_accelerator_code {
    UACCEL_ACCELERATOR_OK = 0,
    UACCEL_ACCELERATOR_TIMEOUT = 1,  /* the device did not finish */
    UACCEL_ACCELERATOR_ERROR = 2,    /* the device reports an error */
    UACCEL_ACCELERATOR_GONE = 3,     /* the device does not answer: its registers read all ones */
    UACCEL_ACCELERATOR_IDENTITY = 4, /* another device is there */
    UACCEL_ACCELERATOR_VERSION = 5,  /* the device is of a version that the driver does not know */
    UACCEL_ACCELERATOR_BUS = 6,      /* the device was refused access to memory */
    UACCEL_ACCELERATOR_STREAM = 7,   /* the command stream is damaged or truncated */
    UACCEL_ACCELERATOR_ARGUMENT = 8, /* the driver was asked for something that the device cannot do */
    UACCEL_ACCELERATOR_OWN = 64
};

/* What accelerators did for one layer, since the session began. */
struct uaccel_account {
    uint32_t calls;
    uint32_t fallbacks; /* how often the CPU computed the layer in an accelerator's place */
    uint64_t cycles;
};

#ifdef UACCEL_ACCOUNTING

/* Generated code, before an accelerator's layer: whatever drivers tell from now on is of this one. */
void uaccel_account_layer(uint32_t layer);

/* A driver, after `calls` commands of its device that took so many of the device's own cycles together; 0 cycles where
 * the device does not count them. From main() alone, not from an interrupt. */
void uaccel_account(uint32_t calls, uint64_t cycles);

/* A driver, before it returns an error: one line of UTF-8 that says what happened, such as "the device never finished
 * (status 0x12)". It is copied and may lie on the stack; what is beyond 79 bytes is cut off. */
void uaccel_account_failure(const char *text);

/* Generated code, where the accelerator of a layer failed and the CPU computes it instead. */
void uaccel_account_fallback(uint32_t layer);

#define UACCEL_ACCOUNT_LAYER(layer) uaccel_account_layer(layer)
#define UACCEL_ACCOUNT(calls, cycles) uaccel_account((calls), (cycles))
#define UACCEL_ACCOUNT_FAILURE(text) uaccel_account_failure(text)
#define UACCEL_ACCOUNT_FALLBACK(layer) uaccel_account_fallback(layer)

#else

#define UACCEL_ACCOUNT_LAYER(layer) ((void)0)
#define UACCEL_ACCOUNT(calls, cycles) ((void)(calls), (void)(cycles))
#define UACCEL_ACCOUNT_FAILURE(text) ((void)(text))
#define UACCEL_ACCOUNT_FALLBACK(layer) ((void)0)

#endif

/* In firmware whose layers are watched, generated code has the addresses checked that its device gets. */
#if defined UACCEL_ACCOUNTING && defined UACCEL_OBSERVE

/* Until the next layer, addresses are multiples of so many bytes. */
void uaccel_account_alignment(uint32_t bytes);

/* An address that the driver or the device is given. */
void uaccel_account_address(uintptr_t address);

/* The status of a layer: an error if any address was no such multiple. */
int32_t uaccel_account_addresses(int32_t status);

#define UACCEL_ACCOUNT_ALIGNMENT(bytes) uaccel_account_alignment(bytes)
#define UACCEL_ACCOUNT_ADDRESS(address) uaccel_account_address(address)
#define UACCEL_ACCOUNT_ADDRESSES(status) uaccel_account_addresses(status)

#else

#define UACCEL_ACCOUNT_ALIGNMENT(bytes) ((void)0)
#define UACCEL_ACCOUNT_ADDRESS(address) ((void)0)
#define UACCEL_ACCOUNT_ADDRESSES(status) (status)

#endif

/* A driver's code that has more than 16 bits counts as this one. */
#define UACCEL_CODE_OTHER 0x7FFF

/* What a run function returns when a layer's driver has returned `code`: a number below 0, from which
 * UACCEL_FAILED_LAYER and UACCEL_FAILED_CODE tell both. It is below -65536; other errors of a run function are not. */
static inline int32_t uaccel_layer_failed(uint32_t layer, int32_t code)
{
    const int32_t told = code >= -0x8000 && code < UACCEL_CODE_OTHER ? code : UACCEL_CODE_OTHER;
    const uint32_t known = layer < 0x7FFEu ? layer : 0x7FFEu;
    return INT32_MIN + (int32_t)(known << 16 | ((uint32_t)told & 0xFFFFu));
}

#define UACCEL_FAILED_LAYER(status) ((uint32_t)(status) >> 16 & 0x7FFFu)
#define UACCEL_FAILED_CODE(status) ((int32_t)(((uint32_t)(status) & 0xFFFFu) ^ 0x8000u) - 0x8000)

#endif
