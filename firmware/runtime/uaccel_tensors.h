/* Tensors as if they lay one after the other, without gaps. */
#ifndef UACCEL_TENSORS_H
#define UACCEL_TENSORS_H

#include <stdint.h>

#include "uaccel_model.h"

uint32_t uaccel_tensors_bytes(const struct uaccel_tensor *tensors, uint32_t count);

/* Goes on from the CRC of what comes before them. */
uint32_t uaccel_tensors_crc(uint32_t crc, const struct uaccel_tensor *tensors, uint32_t count);

/* The range must lie inside them. */
void uaccel_tensors_write(const struct uaccel_tensor *tensors, uint32_t count, uint32_t offset, const uint8_t *from,
                          uint32_t bytes);

#endif
