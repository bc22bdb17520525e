/* How much of the stack was in use: paint what is free, and see later how far the paint has gone. */
#include "core.h"
#include "uaccel_port.h"

/* From the linker script; the stack grows down from the top. */
extern uint32_t uaccel_stack_bottom[];
extern uint32_t uaccel_stack_top[];

static const uint32_t paint = 0xA5A5A5A5u;
static uintptr_t caller; /* its stack pointer */

__attribute__((noinline)) void uaccel_port_stack_paint(void)
{
    /* Nothing lives below the stack pointer, but for an interrupt, which does not interrupt itself. */
    const uintptr_t here = uaccel_core_stack_pointer();
    for (volatile uint32_t *word = uaccel_stack_bottom; (uintptr_t)word < here; ++word) {
        *word = paint;
    }
    caller = (uintptr_t)__builtin_dwarf_cfa();
}

uint32_t uaccel_port_stack_used(void)
{
    const volatile uint32_t *word = uaccel_stack_bottom;
    while (word < uaccel_stack_top && *word == paint) {
        ++word;
    }
    const uintptr_t deepest = (uintptr_t)word;
    return deepest < caller ? (uint32_t)(caller - deepest) : 0;
}
