/* The clock tree of STM32F4 and STM32F7: crystal (or the internal 16 MHz), main PLL, dividers, flash wait states. */
#include <stdbool.h>

#include "stm32.h"
#include "uaccel_board.h"

#define RCC_CR UACCEL_REGISTER(RCC_BASE)
#define RCC_PLLCFGR UACCEL_REGISTER(RCC_BASE + 0x04u)
#define RCC_CFGR UACCEL_REGISTER(RCC_BASE + 0x08u)
#define FLASH_ACR UACCEL_REGISTER(0x40023C00u)
#define PWR_CR UACCEL_REGISTER(0x40007000u)
#define PWR_CSR UACCEL_REGISTER(0x40007004u)
#define SCB_ICIALLU UACCEL_REGISTER(0xE000EF50u)
#define SCB_CCR UACCEL_REGISTER(0xE000ED14u)

#define CR_HSE_ON (1u << 16)
#define CR_HSE_READY (1u << 17)
#define CR_HSE_BYPASS (1u << 18)
#define CR_PLL_ON (1u << 24)
#define CR_PLL_READY (1u << 25)
#define PLLCFGR_FROM_HSE (1u << 22)
#define CFGR_USE_PLL 2u
#define CFGR_USES_PLL (2u << 2)
#define CFGR_USES (3u << 2)
#define CFGR_APB1_BY_4 (5u << 10)
#define CFGR_APB2_BY_2 (4u << 13)
#define APB1ENR_PWR (1u << 28)
#define PWR_OVERDRIVE (1u << 16)
#define PWR_OVERDRIVE_SWITCH (1u << 17)
#define ACR_PREFETCH_AND_CACHES (7u << 8)
#define CCR_INSTRUCTION_CACHE (1u << 17)

enum { HSI_MHZ = 16, MHZ = 1000000, FLASH_MHZ_PER_WAIT = 30, USB_MHZ = 48 };
enum { CPU_MHZ = UACCEL_BOARD_TIMER_HZ / MHZ, LONGEST_WAIT = 50000 };

static bool wait_for(volatile uint32_t *reg, uint32_t mask, uint32_t value)
{
    for (uint32_t i = 0; i < LONGEST_WAIT; ++i) {
        if ((*reg & mask) == value) {
            return true;
        }
    }
    return false;
}

static bool start_crystal(void)
{
    RCC_CR |= CR_HSE_ON | (UACCEL_BOARD_HSE_BYPASS ? CR_HSE_BYPASS : 0u);
    return wait_for(&RCC_CR, CR_HSE_READY, CR_HSE_READY);
}

/* 1 MHz into the PLL, times 2 * CPU_MHZ, by 2. */
static bool start_pll(bool from_crystal)
{
    const uint32_t into = from_crystal ? UACCEL_BOARD_HSE_HZ / MHZ : HSI_MHZ;
    const uint32_t factor = 2u * CPU_MHZ;
    RCC_PLLCFGR = into | factor << 6 | (from_crystal ? PLLCFGR_FROM_HSE : 0u) | factor / USB_MHZ << 24;
    RCC_CR |= CR_PLL_ON;
    return wait_for(&RCC_CR, CR_PLL_READY, CR_PLL_READY);
}

/* The regulator starts at its highest voltage; above 180 MHz an STM32F7 wants more. */
static bool raise_voltage(void)
{
#if UACCEL_BOARD_FAMILY == 7
    RCC_APB1ENR |= APB1ENR_PWR;
    PWR_CR |= PWR_OVERDRIVE;
    if (!wait_for(&PWR_CSR, PWR_OVERDRIVE, PWR_OVERDRIVE)) {
        return false;
    }
    PWR_CR |= PWR_OVERDRIVE_SWITCH;
    return wait_for(&PWR_CSR, PWR_OVERDRIVE_SWITCH, PWR_OVERDRIVE_SWITCH);
#else
    return true;
#endif
}

static bool use_pll(void)
{
    const uint32_t waits = (CPU_MHZ - 1u) / FLASH_MHZ_PER_WAIT;
    FLASH_ACR = waits | ACR_PREFETCH_AND_CACHES;
    if (!wait_for(&FLASH_ACR, 15u, waits)) {
        return false;
    }
    RCC_CFGR = CFGR_APB1_BY_4 | CFGR_APB2_BY_2;
    RCC_CFGR |= CFGR_USE_PLL;
    return wait_for(&RCC_CFGR, CFGR_USES, CFGR_USES_PLL);
}

#if UACCEL_BOARD_FAMILY == 7
/* The data cache stays off: an accelerator's DMA would need its maintenance. */
static void start_instruction_cache(void)
{
    uaccel_core_barrier();
    SCB_ICIALLU = 0;
    uaccel_core_barrier();
    SCB_CCR |= CCR_INSTRUCTION_CACHE;
    uaccel_core_barrier();
}
#endif

struct uaccel_clocks uaccel_stm32_start_clocks(void)
{
    const struct uaccel_clocks wanted = {UACCEL_BOARD_TIMER_HZ, UACCEL_BOARD_TIMER_HZ / 4u, UACCEL_BOARD_TIMER_HZ / 2u};
    const struct uaccel_clocks slow = {HSI_MHZ * MHZ, HSI_MHZ * MHZ, HSI_MHZ * MHZ};
    if (RCC_CR == 0) {
        /* No silicon reads like that, for the internal oscillator is on: an emulator without a clock controller. */
        return wanted;
    }
#if UACCEL_BOARD_FAMILY == 7
    start_instruction_cache();
#endif
    const bool crystal = start_crystal();
    if (!start_pll(crystal) || !raise_voltage() || !use_pll()) {
        RCC_CFGR = 0;
        return slow;
    }
    return wanted;
}
