/* Tell the device where everything lies, start it, and wait: once for a whole region. */
#include <stddef.h>

#include "npu_names.h"
#include "npu_registers.h"
#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define MAGIC 0x5355504Eu /* "NPUS" */
#define FORMAT 1u
#define PLACES 64u
#define WRITTEN 16u
#define POLLS_BESIDE_WORK 10000u /* a look takes the CPU longer than the device a cycle */

/* Of a stream, in bytes. */
enum { MAGIC_AT = 0, FORMAT_AT = 4, SIZE_AT = 8, MACHINE_AT = 12, PREDICTED_AT = 28, HEADER_BYTES = 32 };
enum { MACHINE_WORDS = 4 };

struct memory {
    const void *at;
    uint32_t bytes;
};

static void *npu;
static struct memory written[WRITTEN];
static uint32_t written_count;

static int32_t damaged(const char *text)
{
    UACCEL_ACCOUNT_FAILURE(text);
    return UACCEL_ACCELERATOR_STREAM;
}

static uint32_t word(const uint8_t *at)
{
    return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

int32_t NPU_HOOK(Activate)(void *device)
{
    const int32_t status = uaccel_hal_check(device, NPU_IDENTITY_AT, NPU_IDENTITY, UACCEL_ACCELERATOR_IDENTITY);
    if (status != UACCEL_ACCELERATOR_OK) {
        return status;
    }
    return uaccel_hal_check(device, NPU_VERSION_AT, NPU_VERSION, UACCEL_ACCELERATOR_VERSION);
}

int32_t NPU_HOOK(Open)(void *device)
{
    npu = device;
    written_count = 0;
    return UACCEL_ACCELERATOR_OK;
}

int32_t NPU_HOOK(Close)(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t NPU_HOOK(Deactivate)(void *device)
{
    (void)device;
    npu = NULL;
    return UACCEL_ACCELERATOR_OK;
}

int32_t NPU_CALL(place)(uint32_t number, const void *memory, uint32_t bytes, uint32_t is_written)
{
    const uint32_t base = uaccel_hal_address(memory);
    if (number >= PLACES || (is_written != 0 && written_count == WRITTEN)) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_ARGUMENT, "place ", number, " is one more than the driver can do");
    }
    if (base == 0) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_BUS, "place ", number, " lies where the device does not reach");
    }
    if (is_written != 0) {
        written[written_count].at = memory;
        written[written_count].bytes = bytes;
        written_count++;
    }
    uaccel_hal_clean(memory, bytes);
    uaccel_hal_write32(npu, NPU_PLACE_AT, number);
    uaccel_hal_write32(npu, NPU_BASE_AT, base);
    uaccel_hal_write32(npu, NPU_LIMIT_AT, bytes);
    return UACCEL_ACCELERATOR_OK;
}

/* Whether this is a stream, for this machine, and all of it. */
static int32_t check_stream(const uint8_t *stream, uint32_t bytes)
{
    if (bytes < HEADER_BYTES) {
        return damaged("the command stream is truncated");
    }
    if (word(stream + MAGIC_AT) != MAGIC) {
        return damaged("there is no command stream");
    }
    if (word(stream + FORMAT_AT) != FORMAT) {
        return damaged("the command stream is of another format");
    }
    if (word(stream + SIZE_AT) != bytes) {
        return damaged("the command stream is truncated");
    }
    for (uint32_t i = 0; i < MACHINE_WORDS; ++i) {
        if (uaccel_hal_read32(npu, NPU_CONFIG_AT + 4u * i) != word(stream + MACHINE_AT + 4u * i)) {
            return damaged("the command stream is for a machine of another size");
        }
    }
    return UACCEL_ACCELERATOR_OK;
}

static void see_results(void)
{
    for (uint32_t i = 0; i < written_count; ++i) {
        uaccel_hal_invalidate(written[i].at, written[i].bytes);
    }
}

static int32_t failed(void)
{
    static const char *const errors[] = {
        ": error of no known kind",
        ": the stream's length is wrong, or a command is cut off",
        ": no such command",
        ": it reaches beyond its place or a memory",
        ": a shape that the device cannot do",
        ": a quantisation that the device cannot do",
        ": the device was refused access to memory",
        ": it waits for a token that nobody pushes",
        ": a token for an engine that is not there",
        ": something broke inside the device",
    };
    const uint32_t error = uaccel_hal_read32(npu, NPU_ERROR_AT);
    const uint32_t command = uaccel_hal_read32(npu, NPU_ERROR_COMMAND_AT);
    const char *const text = errors[error < sizeof errors / sizeof errors[0] ? error : 0];
    if (error == NPU_ERROR_BUS) {
        return uaccel_hal_failed(UACCEL_ACCELERATOR_BUS, "command ", command, text);
    }
    const int32_t code = error == NPU_ERROR_STREAM ? UACCEL_ACCELERATOR_STREAM : UACCEL_ACCELERATOR_ERROR;
    return uaccel_hal_failed(code, "command ", command, text);
}

static uint64_t cycles(void)
{
    const uint32_t low = uaccel_hal_read32(npu, NPU_CYCLES_AT);
    return (uint64_t)uaccel_hal_read32(npu, NPU_CYCLES_HIGH_AT) << 32 | low;
}

static int32_t run(const uint8_t *stream, uint32_t bytes, uint32_t layers)
{
    const uint64_t before = cycles();
    const uint32_t most = UINT32_MAX - POLLS_BESIDE_WORK, predicted = word(stream + PREDICTED_AT);
    const uint32_t polls = (predicted < most ? predicted : most) + POLLS_BESIDE_WORK;
    uaccel_hal_clean(stream, bytes);
    uaccel_hal_write32(npu, NPU_COMMANDS_AT, uaccel_hal_address(stream) + HEADER_BYTES);
    uaccel_hal_write32(npu, NPU_LENGTH_AT, bytes - HEADER_BYTES);
    uaccel_hal_write32(npu, NPU_INTERRUPT_AT, NPU_INTERRUPT_ENABLE | NPU_INTERRUPT_PENDING); /* it may end a sleep */
    uaccel_hal_write32(npu, NPU_CONTROL_AT, NPU_START);
    const int32_t waited = uaccel_hal_wait(npu, NPU_STATUS_AT, NPU_DONE, NPU_DONE, polls);
    uaccel_hal_write32(npu, NPU_INTERRUPT_AT, NPU_INTERRUPT_PENDING);
    see_results();
    if (waited != UACCEL_ACCELERATOR_OK) {
        return waited;
    }
    const uint32_t status = uaccel_hal_read32(npu, NPU_STATUS_AT);
    uaccel_hal_write32(npu, NPU_STATUS_AT, 0);
    if ((status & NPU_FAILED) != 0) {
        return failed();
    }
    UACCEL_ACCOUNT(layers, cycles() - before);
    return UACCEL_ACCELERATOR_OK;
}

int32_t NPU_CALL(play)(const uint8_t *stream, uint32_t bytes, uint32_t layers)
{
    int32_t status = check_stream(stream, bytes);
    if (status == UACCEL_ACCELERATOR_OK && uaccel_hal_address(stream) == 0) {
        UACCEL_ACCOUNT_FAILURE("the command stream lies where the device does not reach");
        status = UACCEL_ACCELERATOR_BUS;
    }
    status = status != UACCEL_ACCELERATOR_OK ? status : run(stream, bytes, layers);
    written_count = 0;
    return status;
}
