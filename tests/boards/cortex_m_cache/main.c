/* The Cortex-M's cache maintenance against a mock of its registers.
 *
 * Usage: cache CCR CTR OPERATION ADDRESS BYTES   (all but OPERATION hexadecimal; it is clean or invalidate)
 * Prints what happened, in order: "barrier", "clean 20000000", "invalidate 20000000". */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core.h"
#include "uaccel_hal.h"

enum { CCR, CTR, CLEAN, INVALIDATE, REGISTERS };

static volatile uint32_t registers[REGISTERS];
static int last = -1; /* the register whose value is yet to be printed */

static void print_last(void)
{
    if (last == CLEAN || last == INVALIDATE) {
        printf("%s %08" PRIx32 "\n", last == CLEAN ? "clean" : "invalidate", (uint32_t)registers[last]);
    }
    last = -1;
}

volatile uint32_t *mock_register(uint32_t address)
{
    static const uint32_t addresses[REGISTERS] = {0xE000ED14u, 0xE000ED7Cu, 0xE000EF68u, 0xE000EF5Cu};
    print_last();
    for (int i = 0; i < REGISTERS; ++i) {
        if (addresses[i] == address) {
            last = i;
            return &registers[i];
        }
    }
    printf("there is no register at %08" PRIx32 "\n", address);
    exit(1);
}

void mock_barrier(void)
{
    print_last();
    puts("barrier");
}

int main(int argc, char **argv)
{
    if (argc != 6) {
        return 2;
    }
    registers[CCR] = (uint32_t)strtoul(argv[1], NULL, 16);
    registers[CTR] = (uint32_t)strtoul(argv[2], NULL, 16);
    const void *const memory = (const void *)(uintptr_t)strtoul(argv[4], NULL, 16);
    const uint32_t bytes = (uint32_t)strtoul(argv[5], NULL, 16);
    (strcmp(argv[3], "clean") == 0 ? uaccel_hal_clean : uaccel_hal_invalidate)(memory, bytes);
    print_last();
    return 0;
}
