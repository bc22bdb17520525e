/* The model's inputs as a host writes them: what has been written since a run used them up, and their CRC. */
#ifndef UACCEL_INPUTS_H
#define UACCEL_INPUTS_H

#include <stdbool.h>
#include <stdint.h>

/* The range must lie inside them. Returns whether anything was taken. */
bool uaccel_inputs_write(uint32_t offset, const uint8_t *bytes, uint32_t count);

/* Bytes that were written, from the first one on, since they were spent. */
uint32_t uaccel_inputs_written(void);

/* A run has used them up, or nobody has written any. */
void uaccel_inputs_spend(void);

/* Whether so many runs would compute with inputs that a run has used up. */
bool uaccel_inputs_are_spent(uint32_t count);

/* Of their bytes as they were written. */
uint32_t uaccel_inputs_crc(void);

#endif
