#include "swapper.h"

#include "uaccel_hal.h"

int32_t swapper_swap(void *device, uint32_t value, uint32_t *swapped)
{
    uaccel_hal_write32(device, 0, value);
    *swapped = uaccel_hal_read32(device, 0);
    return uaccel_hal_check(device, 0, value << 16 | value >> 16, UACCEL_ACCELERATOR_ERROR);
}
