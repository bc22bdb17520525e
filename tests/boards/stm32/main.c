/* The STM32 port's clock code against a mock of the clock controller.
 *
 * Usage: clock FAULT...   with FAULT one of: no-controller, crystal, pll, flash, switch, overdrive
 * Prints the clocks that the code believes in, then the registers that it left behind. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "stm32.h"

enum { CELLS = 16 };

static struct {
    uint32_t address;
    volatile uint32_t value;
} cells[CELLS];

static bool no_controller, no_crystal, no_pll, no_flash, no_switch, no_overdrive;

static volatile uint32_t *cell(uint32_t address)
{
    static volatile uint32_t nothing;
    for (int i = 0; i < CELLS; ++i) {
        if (cells[i].address == address || cells[i].address == 0) {
            cells[i].address = address;
            return &cells[i].value;
        }
    }
    return &nothing;
}

static void follow(uint32_t address, uint32_t asked, uint32_t ready, bool broken)
{
    if ((*cell(address) & asked) != 0 && !broken) {
        *cell(address) |= ready;
    }
}

/* What hardware does between two accesses. */
volatile uint32_t *mock_register(uint32_t address)
{
    if (no_controller) {
        *cell(RCC_BASE) = 0;
        return cell(address);
    }
    *cell(RCC_BASE) |= 3u; /* the internal oscillator, on and ready */
    follow(RCC_BASE, 1u << 16, 1u << 17, no_crystal);
    follow(RCC_BASE, 1u << 24, 1u << 25, no_pll);
    follow(RCC_BASE + 8u, 2u, 2u << 2, no_switch);
    if (no_flash) {
        *cell(0x40023C00u) &= ~15u;
    }
    if (!no_overdrive) {
        *cell(0x40007004u) |= *cell(0x40007000u) & (3u << 16);
    }
    return cell(address);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; ++i) {
        no_controller |= strcmp(argv[i], "no-controller") == 0;
        no_crystal |= strcmp(argv[i], "crystal") == 0;
        no_pll |= strcmp(argv[i], "pll") == 0;
        no_flash |= strcmp(argv[i], "flash") == 0;
        no_switch |= strcmp(argv[i], "switch") == 0;
        no_overdrive |= strcmp(argv[i], "overdrive") == 0;
    }
    const struct uaccel_clocks clocks = uaccel_stm32_start_clocks();
    printf("%" PRIu32 " %" PRIu32 " %" PRIu32 "\n", clocks.cpu, clocks.apb1, clocks.apb2);
    printf("CR %08" PRIx32 "\n", *cell(RCC_BASE));
    printf("PLLCFGR %08" PRIx32 "\n", *cell(RCC_BASE + 4u));
    printf("CFGR %08" PRIx32 "\n", *cell(RCC_BASE + 8u));
    printf("ACR %08" PRIx32 "\n", *cell(0x40023C00u));
    return 0;
}
