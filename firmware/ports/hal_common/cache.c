/* Data caches: none. Where the CPU has one, another definition takes this one's place. */
#include "uaccel_hal.h"

__attribute__((weak)) void uaccel_hal_clean(const void *memory, uint32_t bytes)
{
    (void)memory;
    (void)bytes;
}

__attribute__((weak)) void uaccel_hal_invalidate(const void *memory, uint32_t bytes)
{
    (void)memory;
    (void)bytes;
}
