/* The driver of the tests' adder. */
#ifndef ADDER_H
#define ADDER_H

#include <stdint.h>

int32_t TVMDeviceAdderActivate(void *device);
int32_t TVMDeviceAdderOpen(void *device);
int32_t TVMDeviceAdderClose(void *device);
int32_t TVMDeviceAdderDeactivate(void *device);

/* to[i] = from[i] + value, modulo 256. 0, or a code of uaccel_accelerator.h. */
int32_t adder_add(const int8_t *from, int8_t *to, uint32_t count, int8_t value);

#endif
