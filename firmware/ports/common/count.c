/* Instructions retired, as told by an emulator.
 *
 * Under QEMU a plugin counts and, each time that uaccel_port_instructions is entered, writes the count into the window
 * below, in the emulated flash: two loads read it. Nothing of it is seen by a real board, where the window keeps what
 * the linker put there: no count. See qemu_plugin/count.c and python/uaccel/session/counting.py, which find the
 * function and the window by their names. */
#include "uaccel_port.h"

extern const uint32_t uaccel_count_window[2];
__attribute__((section(".rodata.uaccel_count"))) const uint32_t uaccel_count_window[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};

UACCEL_PORT_UNCOUNTED uint64_t uaccel_port_instructions(void)
{
    const volatile uint32_t *const window = uaccel_count_window;
    const uint64_t high = window[1];
    return high << 32 | window[0];
}
