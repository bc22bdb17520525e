/* The data cache of those Cortex-M that have one (M7, M55, M85), by address. Off is as good as not there. */
#include "core.h"
#include "uaccel_hal.h"

#define SCB_CCR UACCEL_REGISTER(0xE000ED14u)
#define SCB_CTR UACCEL_REGISTER(0xE000ED7Cu)
#define SCB_DCIMVAC UACCEL_REGISTER(0xE000EF5Cu)
#define SCB_DCCMVAC UACCEL_REGISTER(0xE000EF68u)

enum { CCR_DATA_CACHE_ON = 1 << 16 };

/* CTR tells it as a power of two, in words. */
static uint32_t bytes_of_a_line(void)
{
    return 4u << (SCB_CTR >> 16 & 15u);
}

static void clean_line(uint32_t address)
{
    SCB_DCCMVAC = address;
}

static void invalidate_line(uint32_t address)
{
    SCB_DCIMVAC = address;
}

static void for_each_line(const void *memory, uint32_t bytes, void (*operation)(uint32_t address))
{
    if (bytes == 0 || (SCB_CCR & CCR_DATA_CACHE_ON) == 0) {
        return;
    }
    const uint32_t size = bytes_of_a_line();
    const uint32_t first = (uint32_t)(uintptr_t)memory & ~(size - 1u);
    const uint32_t lines = ((uint32_t)(uintptr_t)memory - first + bytes + size - 1u) / size;
    uaccel_core_barrier();
    for (uint32_t i = 0; i < lines; ++i) {
        operation(first + i * size);
    }
    uaccel_core_barrier();
}

void uaccel_hal_clean(const void *memory, uint32_t bytes)
{
    for_each_line(memory, bytes, clean_line);
}

void uaccel_hal_invalidate(const void *memory, uint32_t bytes)
{
    for_each_line(memory, bytes, invalidate_line);
}
