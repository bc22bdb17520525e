#include "vanilla.h"

#include <stddef.h>

#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#ifdef UACCEL_ACCOUNTING
#include "uaccel_log.h" /* a session server is there to tell */
#define LOG_INFO(text) uaccel_log(UACCEL_LOG_INFO, (text))
#else
#define LOG_INFO(text) ((void)(text))
#endif

#define IDENTITY 0x56414E49u /* "VANI" */
#define VERSION 0x00010000u
#define LARGEST_TENSOR 0x7FFFFFFF
#define POLLS_AT_LEAST 1000u

enum {
    IDENTITY_AT = 0x00,
    VERSION_AT = 0x04,
    START_AT = 0x08, /* a write starts the job, or stops the one under way when it writes 0 */
    STATUS_AT = 0x0C,
    ADDRESSES_AT = 0x10,  /* input, weights, output */
    PARAMETERS_AT = 0x1C, /* as vanilla_conv2d has them */
    CYCLES_AT = 0x34      /* of the last job */
};

enum { DONE = 1, FAILED = 2, REFUSED = 4, IMPOSSIBLE = 8 }; /* DONE however a job ends; then at most one of the rest */

struct memory {
    const void *at;
    uint32_t bytes;
};

enum { INPUT, WEIGHTS, OUTPUT, TENSORS };

static void *vanilla;

static int32_t failed(int32_t code, const char *what)
{
    UACCEL_ACCOUNT_FAILURE(what);
    return code;
}

int32_t TVMDeviceVanillaActivate(void *device)
{
    vanilla = NULL; /* until it is known to be a good one */
    const uint32_t identity = uaccel_hal_read32(device, IDENTITY_AT);
    if (identity == UINT32_MAX) {
        return failed(UACCEL_ACCELERATOR_GONE, "vanilla does not answer: its identity reads all ones");
    }
    if (identity != IDENTITY) {
        return failed(UACCEL_ACCELERATOR_IDENTITY, "the device is not vanilla: another identity");
    }
    if (uaccel_hal_read32(device, VERSION_AT) != VERSION) {
        return failed(UACCEL_ACCELERATOR_VERSION, "vanilla has another version than 1.0");
    }
    LOG_INFO("vanilla found, version 1.0");
    vanilla = device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceVanillaOpen(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceVanillaClose(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceVanillaDeactivate(void *device)
{
    (void)device;
    vanilla = NULL;
    return UACCEL_ACCELERATOR_OK;
}

/* 0 where there is no such tensor. */
static uint32_t size_of(int32_t a, int32_t b, int32_t c, int32_t d)
{
    const int32_t extents[] = {a, b, c, d};
    uint64_t bytes = sizeof(float);
    for (uint32_t i = 0; i < 4u; ++i) {
        if (extents[i] < 1) {
            return 0;
        }
        bytes *= (uint32_t)extents[i]; /* no more than 62 bits */
        if (bytes > LARGEST_TENSOR) {
            return 0;
        }
    }
    return (uint32_t)bytes;
}

static int32_t result(void)
{
    const uint32_t status = uaccel_hal_read32(vanilla, STATUS_AT);
    if (status == UINT32_MAX) {
        return failed(UACCEL_ACCELERATOR_GONE, "vanilla does not answer: its status reads all ones");
    }
    if ((status & REFUSED) != 0) {
        return failed(UACCEL_ACCELERATOR_BUS, "vanilla was refused access to memory");
    }
    if ((status & IMPOSSIBLE) != 0) {
        return failed(UACCEL_ACCELERATOR_ARGUMENT, "vanilla refuses the job: a parameter is out of its range");
    }
    return (status & FAILED) != 0 ? failed(UACCEL_ACCELERATOR_ERROR, "vanilla reports an error") : 0;
}

static int32_t run(const struct memory *tensors, uint32_t polls)
{
    for (uint32_t i = 0; i < TENSORS; ++i) {
        uaccel_hal_clean(tensors[i].at, tensors[i].bytes);
    }
    uaccel_hal_write32(vanilla, START_AT, 1);
    int32_t code = uaccel_hal_wait(vanilla, STATUS_AT, DONE, DONE, polls);
    if (code == UACCEL_ACCELERATOR_OK) {
        code = result();
    } else {
        uaccel_hal_write32(vanilla, START_AT, 0); /* nothing may write to memory that others use by then */
    }
    uaccel_hal_invalidate(tensors[OUTPUT].at, tensors[OUTPUT].bytes);
    if (code == UACCEL_ACCELERATOR_OK) {
        UACCEL_ACCOUNT(1, uaccel_hal_read32(vanilla, CYCLES_AT));
    }
    return code;
}

int32_t vanilla_conv2d(const float *input, const float *weights, float *output, int32_t in_channels, int32_t height,
                       int32_t width, int32_t out_channels, int32_t kernel_height, int32_t kernel_width)
{
    const int32_t parameters[] = {in_channels, height, width, out_channels, kernel_height, kernel_width};
    const struct memory tensors[TENSORS] = {
        {input, size_of(in_channels, height, width, 1)},
        {weights, size_of(out_channels, in_channels, kernel_height, kernel_width)},
        {output, size_of(out_channels, height, width, 1)},
    };
    for (uint32_t i = 0; i < TENSORS; ++i) {
        const uint32_t address = uaccel_hal_address(tensors[i].at);
        if (tensors[i].bytes == 0) {
            return failed(UACCEL_ACCELERATOR_ARGUMENT, "vanilla: a tensor would be empty or too large");
        }
        if (address == 0) {
            return failed(UACCEL_ACCELERATOR_BUS, "vanilla: a tensor lies in memory that devices do not reach");
        }
        uaccel_hal_write32(vanilla, ADDRESSES_AT + 4u * i, address);
    }
    for (uint32_t i = 0; i < sizeof parameters / sizeof parameters[0]; ++i) {
        uaccel_hal_write32(vanilla, PARAMETERS_AT + 4u * i, (uint32_t)parameters[i]);
    }
    /* A product takes it a cycle, and a look several. */
    const uint64_t products = (uint64_t)(tensors[WEIGHTS].bytes / sizeof(float)) * (uint32_t)height * (uint32_t)width;
    const uint32_t longest = UINT32_MAX - POLLS_AT_LEAST;
    return run(tensors, (products < longest ? (uint32_t)products : longest) + POLLS_AT_LEAST);
}
