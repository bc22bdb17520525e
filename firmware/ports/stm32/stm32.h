/* What clock.c and uart.c of this port tell each other. */
#ifndef UACCEL_STM32_H
#define UACCEL_STM32_H

#include <stdint.h>

#include "core.h"

#define RCC_BASE 0x40023800u
#define RCC_AHB1ENR UACCEL_REGISTER(RCC_BASE + 0x30u)
#define RCC_APB1ENR UACCEL_REGISTER(RCC_BASE + 0x40u)
#define RCC_APB2ENR UACCEL_REGISTER(RCC_BASE + 0x44u)

/* In Hz, as they are and not as they should be. */
struct uaccel_clocks {
    uint32_t cpu;
    uint32_t apb1;
    uint32_t apb2;
};

/* Bring the CPU to UACCEL_BOARD_TIMER_HZ. Every wait has a bound: with a broken crystal the PLL runs from the internal
 * oscillator, without a PLL the CPU does. */
struct uaccel_clocks uaccel_stm32_start_clocks(void);

#endif
