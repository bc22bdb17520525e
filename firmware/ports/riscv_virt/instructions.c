/* Custom instructions on a core that has none: the model of their unit answers. */
#ifdef UACCEL_INSTRUCTIONS

#include "core.h"
#include "uaccel_instruction.h"

#ifdef __riscv_flen
#define KEPT (64 + 20 * 8) / 4
#else
#define KEPT 64 / 4
#endif

enum { CUSTOM_0 = 0x0B, NONE = 0xFF };

/* Where startup.S leaves each register; x0, sp, gp and tp are no operands. */
static const uint8_t places[32] = {
    NONE, 0, NONE, NONE, NONE, 9, 10, 11, KEPT, KEPT + 1, 1, 2, 3, 4, 5, 6,
    7, 8, KEPT + 2, KEPT + 3, KEPT + 4, KEPT + 5, KEPT + 6, KEPT + 7,
    KEPT + 8, KEPT + 9, KEPT + 10, KEPT + 11, 12, 13, 14, 15,
};

UACCEL_PORT_UNCOUNTED bool uaccel_undefined_instruction(uint32_t *frame)
{
    uint32_t pc;
    __asm volatile("csrr %0, mepc" : "=r"(pc));
    const uint16_t *const halves = (const uint16_t *)(uintptr_t)pc;
    const uint32_t word = (uint32_t)halves[1] << 16 | halves[0];
    const uint8_t target = places[word >> 7 & 31u], left = places[word >> 15 & 31u], right = places[word >> 20 & 31u];
    if ((word & 0x7Fu) != CUSTOM_0) {
        return false;
    }
    const uint32_t result =
        (uint32_t)uaccel_unit(word >> 25 << 3 | (word >> 12 & 7u), left == NONE ? 0 : (int32_t)frame[left],
                              right == NONE ? 0 : (int32_t)frame[right]);
    if (target != NONE) {
        frame[target] = result;
    }
    __asm volatile("csrw mepc, %0" ::"r"(pc + 4u));
    return true;
}

#else

typedef int no_custom_instructions; /* a file of C holds something */

#endif
