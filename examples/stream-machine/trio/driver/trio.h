/* The driver of trio. All functions return 0 or a code of uaccel_accelerator.h. */
#ifndef TRIO_H
#define TRIO_H

#include <stdint.h>

int32_t TVMDeviceTrioActivate(void *device);
int32_t TVMDeviceTrioOpen(void *device);
int32_t TVMDeviceTrioClose(void *device);
int32_t TVMDeviceTrioDeactivate(void *device);

/* The memory that the next stream knows by this number, below 8. */
int32_t trio_place(uint32_t number, const void *memory, uint32_t bytes);

/* Play so many commands, of so many layers, to their end; `cycles`: how long it should take. */
int32_t trio_play(const void *stream, uint32_t commands, uint32_t layers, uint32_t cycles);

#endif
