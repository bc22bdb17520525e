#include "matrix8.h"

#include <stddef.h>

#include "matrix8_registers.h"
#include "uaccel_accelerator.h"
#include "uaccel_hal.h"

#define POLLS 100000u /* the longest command takes fewer cycles than that many reads of a register */

static void *matrix8;
static int32_t failed; /* the first error since matrix8_begin */

int32_t TVMDeviceMatrix8Activate(void *device)
{
    const uint32_t identity = uaccel_hal_read32(device, MATRIX8_IDENTITY);
    matrix8 = device;
    if (identity == UINT32_MAX) {
        UACCEL_ACCOUNT_FAILURE("the device does not answer: its identity reads all ones");
        return UACCEL_ACCELERATOR_GONE;
    }
    if (identity != MATRIX8_IDENTITY_VALUE) {
        UACCEL_ACCOUNT_FAILURE("another device stands where matrix8 was expected");
        return UACCEL_ACCELERATOR_IDENTITY;
    }
    if (uaccel_hal_read32(device, MATRIX8_VERSION) != MATRIX8_VERSION_VALUE) {
        UACCEL_ACCOUNT_FAILURE("the device is of another version, wanted 1.1");
        return UACCEL_ACCELERATOR_VERSION;
    }
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceMatrix8Open(void *device)
{
    matrix8 = device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceMatrix8Close(void *device)
{
    (void)device;
    return UACCEL_ACCELERATOR_OK;
}

int32_t TVMDeviceMatrix8Deactivate(void *device)
{
    (void)device;
    matrix8 = NULL;
    return UACCEL_ACCELERATOR_OK;
}

static void write_from(uint32_t offset, const int32_t *values, uint32_t count)
{
    for (uint32_t i = 0; failed == 0 && i < count; ++i) {
        uaccel_hal_write32(matrix8, offset + 4u * i, (uint32_t)values[i]);
    }
}

/* Waits until there is room in the queues. */
static void command(uint32_t what, const int32_t *arguments, uint32_t count)
{
    if (failed == 0) {
        failed = uaccel_hal_wait(matrix8, MATRIX8_STATUS, MATRIX8_FULL, 0, POLLS);
    }
    write_from(MATRIX8_ARGUMENT, arguments, count);
    if (failed == 0) {
        uaccel_hal_write32(matrix8, MATRIX8_COMMAND, what);
    }
}

/* 0 where the device does not reach it, which then fails. */
static int32_t address(const void *memory, int32_t at)
{
    const uint32_t found = uaccel_hal_address(memory);
    if (found == 0 && failed == 0) {
        UACCEL_ACCOUNT_FAILURE("a tensor lies in memory that the device does not reach");
        failed = UACCEL_ACCELERATOR_ARGUMENT;
    }
    return (int32_t)(found + (uint32_t)at);
}

void matrix8_begin(void)
{
    failed = UACCEL_ACCELERATOR_OK;
    uaccel_hal_write32(matrix8, MATRIX8_CONTROL, 1);
}

void matrix8_share(const void *memory, int32_t bytes)
{
    uaccel_hal_clean(memory, (uint32_t)bytes);
}

void matrix8_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max, int32_t single)
{
    const int32_t values[] = {zero_point, clamp_min, clamp_max, single};
    write_from(MATRIX8_OUTPUT, values, 4);
}

void matrix8_window(int32_t kernel_rows, int32_t kernel_columns, int32_t run, int32_t kernel_row_pitch,
                    int32_t kernel_column_pitch, int32_t row_pitch, int32_t column_pitch)
{
    const int32_t values[] = {kernel_rows,         kernel_columns, run,         kernel_row_pitch,
                              kernel_column_pitch, row_pitch,      column_pitch};
    write_from(MATRIX8_WINDOW, values, 7);
}

void matrix8_fill(enum matrix8_memory memory, int32_t offset, int32_t bytes, int32_t value)
{
    const int32_t arguments[] = {(int32_t)memory, offset, bytes, value};
    command(MATRIX8_DO_FILL, arguments, 4);
}

void matrix8_load(enum matrix8_memory memory, int32_t offset, int32_t pitch, const void *from, int32_t at,
                  int32_t stride, int32_t rows, int32_t bytes)
{
    if (rows > 0 && bytes > 0) {
        const int32_t arguments[] = {(int32_t)memory, offset, pitch, address(from, at), stride, rows, bytes};
        command(MATRIX8_DO_LOAD, arguments, 7);
    }
}

void matrix8_multiply(int32_t accumulators, int32_t activations, int32_t weights, int32_t rows, int32_t columns,
                      int32_t blocks, int32_t add)
{
    const int32_t arguments[] = {accumulators, activations, weights, rows, columns, blocks, add};
    command(MATRIX8_DO_MULTIPLY, arguments, 7);
}

void matrix8_store(void *to, int32_t at, int32_t stride, int32_t accumulators, int32_t parameters, int32_t pixels,
                   int32_t channels)
{
    const int32_t arguments[] = {address(to, at), stride, accumulators, parameters, pixels, channels};
    command(MATRIX8_DO_STORE, arguments, 6);
}

static int32_t told_error(void)
{
    const uint32_t status = uaccel_hal_read32(matrix8, MATRIX8_STATUS);
    if (status == UINT32_MAX) {
        UACCEL_ACCOUNT_FAILURE("the device does not answer any more: its status reads all ones");
        return UACCEL_ACCELERATOR_GONE;
    }
    if ((status & MATRIX8_FAILED) == 0) {
        return UACCEL_ACCELERATOR_OK;
    }
    switch (uaccel_hal_read32(matrix8, MATRIX8_ERROR)) {
    case MATRIX8_ERROR_BUS:
        UACCEL_ACCOUNT_FAILURE("the device was refused access to memory");
        return UACCEL_ACCELERATOR_BUS;
    case MATRIX8_ERROR_COMMAND:
    case MATRIX8_ERROR_RANGE:
    case MATRIX8_ERROR_ARGUMENT:
        UACCEL_ACCOUNT_FAILURE("the device was given a command that it cannot do");
        return UACCEL_ACCELERATOR_ARGUMENT;
    default:
        UACCEL_ACCOUNT_FAILURE("the device reports an error of its own");
        return UACCEL_ACCELERATOR_ERROR;
    }
}

int32_t matrix8_finish(void *memory, int32_t bytes)
{
    if (failed == 0) {
        failed = uaccel_hal_wait(matrix8, MATRIX8_STATUS, MATRIX8_BUSY, 0, POLLS);
    }
    if (failed == 0) {
        failed = told_error();
    }
    uaccel_hal_invalidate(memory, (uint32_t)bytes);
    if (failed == 0) {
        UACCEL_ACCOUNT(uaccel_hal_read32(matrix8, MATRIX8_COMMANDS), uaccel_hal_read32(matrix8, MATRIX8_CYCLES));
    }
    return failed;
}
