/* The core's data cache writes through: memory holds what was stored. What a device has stored is seen when the cache is
 * emptied, all of it, by an instruction of VexRiscv's own. */
#include "uaccel_hal.h"

void uaccel_hal_clean(const void *memory, uint32_t bytes)
{
    (void)memory;
    (void)bytes;
    __asm volatile("" ::: "memory");
}

void uaccel_hal_invalidate(const void *memory, uint32_t bytes)
{
    (void)memory;
    (void)bytes;
    __asm volatile(".word 0x0000500F" ::: "memory");
}
