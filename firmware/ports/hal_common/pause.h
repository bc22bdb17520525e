/* What uaccel_hal_wait does between two looks at the device. */
#ifndef UACCEL_PAUSE_H
#define UACCEL_PAUSE_H

#include <stdint.h>

/* Sleep until the device may have finished, where it has an interrupt; else do nothing. Returns how many looks that was
 * worth, at least 1. Weak: a port may provide it. */
uint32_t uaccel_hal_pause(const void *device);

#endif
