/* The driver of lookup_unit. All functions return 0 or a code of uaccel_accelerator.h. */
#ifndef LOOKUP_UNIT_H
#define LOOKUP_UNIT_H

#include <stdint.h>

/* Generated code calls these: before an inference, before and after a layer, after the inference. */
int32_t TVMDeviceLookupUnitActivate(void *device);
int32_t TVMDeviceLookupUnitOpen(void *device);
int32_t TVMDeviceLookupUnitClose(void *device);
int32_t TVMDeviceLookupUnitDeactivate(void *device);

/* y[i] = table[x[i]] for each i < bytes; a byte of x is a number from 0 to 255 there. */
int32_t lookup_unit_translate(const void *x, const void *table, void *y, uint32_t bytes);

#endif
