/* Data caches: none. Who has one provides both functions, in a port or elsewhere; these are weak. */
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
