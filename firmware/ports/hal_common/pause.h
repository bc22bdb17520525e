/* What uaccel_hal_wait does between two looks at the device. */
#ifndef UACCEL_PAUSE_H
#define UACCEL_PAUSE_H

#include <stdint.h>

/* Sleep until the device may have finished, where that can be done; else do nothing. Returns how many looks that was
 * worth, at least 1. Provided by the place's part of the HAL. */
uint32_t uaccel_hal_pause(const void *device);

/* Sleep until interrupt `irq` is pending, or any other that is enabled. Returns as uaccel_hal_pause. Provided by the
 * CPU's part of the HAL. */
uint32_t uaccel_pause_until_interrupt(uint32_t irq);

#endif
