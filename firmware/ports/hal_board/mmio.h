/* Registers that lie in the CPU's address space. A barrier orders them with memory: what the CPU has stored is there
 * when a write starts a device, and nothing is loaded early that a read tells to be ready. */
#ifndef UACCEL_MMIO_H
#define UACCEL_MMIO_H

#include <stdint.h>

static inline uint32_t uaccel_mmio_read(uintptr_t base, uint32_t offset)
{
    const uint32_t value = *(const volatile uint32_t *)(base + (uintptr_t)offset);
    __sync_synchronize();
    return value;
}

static inline void uaccel_mmio_write(uintptr_t base, uint32_t offset, uint32_t value)
{
    __sync_synchronize();
    *(volatile uint32_t *)(base + (uintptr_t)offset) = value;
}

#endif
