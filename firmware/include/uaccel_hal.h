/* How an accelerator's driver reaches its device, wherever it runs: a model inside the host's process
 * (firmware/ports/hal_host), a model behind an emulated board (hal_qemu), or the hardware (hal_mmio).
 *
 * From main() alone, not from an interrupt. */
#ifndef UACCEL_HAL_H
#define UACCEL_HAL_H

#include <stdint.h>

#include "uaccel_accelerator.h"

/* The device of that name: the handle for the functions below. NULL where there is none; reads are then all ones, and
 * writes are lost. When the firmware starts, models of devices are as after power-on; hardware is as its reset left it. */
void *uaccel_hal_device(const char *name);

/* A 32-bit register; `offset` in bytes, a multiple of 4. Accesses happen in the order of the calls, after all stores to
 * memory before them. */
uint32_t uaccel_hal_read32(void *device, uint32_t offset);
void uaccel_hal_write32(void *device, uint32_t offset, uint32_t value);

/* Memory as devices see it: what goes into an address register. 0 where no device can reach it. */
uint32_t uaccel_hal_address(const void *memory);

/* Wait until (register & mask) == value: look at most `polls` times, at least once. Where the board file gives the
 * device an interrupt the CPU sleeps in between; it must then be raised when the condition comes true, stay until it is
 * cleared at the device, and as many polls as fit into the time count.
 *
 * 0; UACCEL_ACCELERATOR_TIMEOUT; or UACCEL_ACCELERATOR_GONE where the register reads all ones, as where there is nothing.
 * The reason is told to the host (UACCEL_ACCOUNT_FAILURE). */
int32_t uaccel_hal_wait(void *device, uint32_t offset, uint32_t mask, uint32_t value, uint32_t polls);

/* Whether a register reads `wanted`: who the device is, and which version. 0; UACCEL_ACCELERATOR_GONE where it reads all
 * ones; else `code`. What was found is told to the host. */
int32_t uaccel_hal_check(void *device, uint32_t offset, uint32_t wanted, int32_t code);

/* Tell the host of a failure, "<before><number><after>" in 79 bytes at most, and return `code`. */
int32_t uaccel_hal_failed(int32_t code, const char *before, uint32_t number, const char *after);

/* Data caches. Before a job, clean all that the device reads and all that it will write: what the CPU has stored is then
 * in memory, and no line of the cache is left that would be stored over the results later. After it, invalidate what it
 * wrote: the CPU reads it from memory. Nothing happens where there is no data cache or where it is off. */
void uaccel_hal_clean(const void *memory, uint32_t bytes);
void uaccel_hal_invalidate(const void *memory, uint32_t bytes);

#endif
