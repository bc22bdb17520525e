/* In place of the Cortex-M's own core.h: registers of a mock. */
#ifndef MOCK_CORE_H
#define MOCK_CORE_H

#include <stdint.h>

volatile uint32_t *mock_register(uint32_t address);
void mock_barrier(void);

#define UACCEL_REGISTER(address) (*mock_register(address))

static inline void uaccel_core_barrier(void)
{
    mock_barrier();
}

#endif
