/* Instructions retired, as told by an emulator, else by the CPU where it can (uaccel_core_instructions).
 *
 * Under QEMU a plugin counts and, each time that uaccel_port_instructions is entered, writes the count into the window
 * below, in the emulated flash: two loads read it. Nothing of it is seen by a real board, where the window keeps what
 * the linker put there. See qemu_plugin/count.c and python/uaccel/session/qemu.py, which find the
 * function and the window by their names. */
#include "core.h"
#include "uaccel_port.h"

extern const uint32_t uaccel_count_window[2];
__attribute__((section(".rodata.uaccel_count"))) const uint32_t uaccel_count_window[2] = {0xFFFFFFFFu, 0xFFFFFFFFu};

UACCEL_PORT_UNCOUNTED uint64_t uaccel_port_instructions(void)
{
    const volatile uint32_t *const window = uaccel_count_window;
    const uint64_t told = (uint64_t)window[1] << 32 | window[0];
    return told != UACCEL_PORT_NO_COUNT ? told : uaccel_core_instructions();
}
