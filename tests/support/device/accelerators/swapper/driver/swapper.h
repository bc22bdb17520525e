/* The driver of the tests' swapper. */
#ifndef SWAPPER_H
#define SWAPPER_H

#include <stdint.h>

/* The halves of `value` exchanged. 0, or a code of uaccel_accelerator.h. */
int32_t swapper_swap(void *device, uint32_t value, uint32_t *swapped);

#endif
