#include "conveyor.h"

#include <stddef.h>

#include "conveyor_stream.h"
#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define IDENTITY 0x434E5659u
#define VERSION 0x00010000u
#define POLLS_BESIDE_WORK 10000u /* a look takes the CPU longer than the device a cycle */

enum {
    IDENTITY_AT = 0x00,
    VERSION_AT = 0x04,
    START_AT = 0x08,  /* any value: play the stream */
    STATUS_AT = 0x0C, /* a write takes the interrupt back */
    ERROR_AT = 0x10,
    COMMAND_AT = 0x14, /* commands that are done: at an error the number of the one that failed */
    STREAM_AT = 0x18,
    BYTES_AT = 0x1C,
    PLACE_AT = 0x20, /* which place BASE_AT is about */
    BASE_AT = 0x24,
    CYCLES_AT = 0x28, /* since reset; the upper half behind it */
    CYCLES_HIGH_AT = 0x2C
};

enum { DONE = 1, FAILED = 2 }; /* DONE however a stream ends */

enum { ERROR_STREAM = 1, ERROR_BUS = 6 };

static void *conveyor;
static const void *places[CONVEYOR_PLACES];

static void forget_places(void)
{
    for (uint32_t i = 0; i < CONVEYOR_PLACES; ++i) {
        places[i] = NULL;
    }
}

int32_t TVMDeviceConveyorActivate(void *device)
{
    const int32_t status = uaccel_hal_check(device, IDENTITY_AT, IDENTITY, UACCEL_ACCELERATOR_IDENTITY);
    if (status != UACCEL_ACCELERATOR_OK) {
        return status;
    }
    return uaccel_hal_check(device, VERSION_AT, VERSION, UACCEL_ACCELERATOR_VERSION);
}

int32_t TVMDeviceConveyorOpen(void *device)
{
    conveyor = device;
    forget_places();
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceConveyorClose(void *device)
{
    (void)device;
    forget_places();
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceConveyorDeactivate(void *device)
{
    (void)device;
    conveyor = NULL;
    return UACCEL_ACCELERATOR_OK;
}

int32_t conveyor_place(uint32_t number, const void *memory)
{
    if (number >= CONVEYOR_PLACES) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_ARGUMENT, "the device has no place ", number, "");
    }
    places[number] = memory;
    return UACCEL_ACCELERATOR_OK;
}

/* Every place of the stream must be known, and in memory that the device reaches. */
static int32_t tell_places(const struct conveyor_stream *stream)
{
    for (uint32_t i = 0; i < stream->places; ++i) {
        const uint32_t base = uaccel_hal_address(places[i]);
        if (places[i] == NULL) {
            return uaccel_hal_failed(UACCEL_ACCELERATOR_ARGUMENT, "place ", i, " of the stream was not told");
        }
        if (base == 0) {
            return uaccel_hal_failed(UACCEL_ACCELERATOR_BUS, "place ", i, " lies where the device does not reach");
        }
        uaccel_hal_clean(places[i], conveyor_stream_place(stream, i).bytes);
        uaccel_hal_write32(conveyor, PLACE_AT, i);
        uaccel_hal_write32(conveyor, BASE_AT, base);
    }
    return UACCEL_ACCELERATOR_OK;
}

static void see_results(const struct conveyor_stream *stream)
{
    for (uint32_t i = 0; i < stream->places; ++i) {
        const struct conveyor_memory memory = conveyor_stream_place(stream, i);
        if (conveyor_is_written(memory.kind)) {
            uaccel_hal_invalidate(places[i], memory.bytes);
        }
    }
}

static int32_t failed(void)
{
    static const char *const errors[] = {
        ": error of no known kind",
        ": the device cannot read the stream",
        ": no such operation",
        ": a tensor lies outside its place",
        ": a shape that the device cannot do",
        ": a quantisation that the device cannot do",
        ": the device was refused access to memory",
        ": something broke inside the device",
    };
    const uint32_t error = uaccel_hal_read32(conveyor, ERROR_AT);
    const uint32_t command = uaccel_hal_read32(conveyor, COMMAND_AT);
    const char *const text = errors[error < sizeof errors / sizeof errors[0] ? error : 0];
    if (error == ERROR_BUS) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_BUS, "command ", command, text);
    }
    const int32_t code = error == ERROR_STREAM ? UACCEL_ACCELERATOR_STREAM : UACCEL_ACCELERATOR_ERROR;
    return uaccel_hal_failed(code, "command ", command, text);
}

static uint64_t cycles(void)
{
    const uint32_t low = uaccel_hal_read32(conveyor, CYCLES_AT); /* this read holds the upper half until it is read */
    return (uint64_t)uaccel_hal_read32(conveyor, CYCLES_HIGH_AT) << 32 | low;
}

static int32_t run(const struct conveyor_stream *stream)
{
    const uint64_t before = cycles();
    const uint32_t most = UINT32_MAX - POLLS_BESIDE_WORK;
    const uint32_t polls = (stream->cycles < most ? stream->cycles : most) + POLLS_BESIDE_WORK;
    uaccel_hal_clean(stream->bytes, stream->size);
    uaccel_hal_write32(conveyor, STREAM_AT, uaccel_hal_address(stream->bytes));
    uaccel_hal_write32(conveyor, BYTES_AT, stream->size);
    uaccel_hal_write32(conveyor, START_AT, 1);
    const int32_t waited = uaccel_hal_wait(conveyor, STATUS_AT, DONE, DONE, polls);
    see_results(stream);
    if (waited != UACCEL_ACCELERATOR_OK) {
        return waited;
    }
    const uint32_t status = uaccel_hal_read32(conveyor, STATUS_AT);
    uaccel_hal_write32(conveyor, STATUS_AT, 0);
    if ((status & FAILED) != 0) {
        return failed();
    }
    UACCEL_ACCOUNT(stream->commands, cycles() - before);
    return UACCEL_ACCELERATOR_OK;
}

int32_t conveyor_play(const uint8_t *bytes, uint32_t size)
{
    struct conveyor_stream stream;
    const char *const damage = conveyor_stream_open(&stream, bytes, size);
    int32_t status = UACCEL_ACCELERATOR_STREAM;
    if (damage != NULL) {
        UACCEL_ACCOUNT_FAILURE(damage);
    } else {
        status = tell_places(&stream);
        status = status != UACCEL_ACCELERATOR_OK ? status : run(&stream);
    }
    forget_places();
    return status;
}
