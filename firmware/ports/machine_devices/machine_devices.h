/* Devices behind a simulated core: what a library of models gives to the machine that opens it (firmware/simulator). */
#ifndef UACCEL_MACHINE_DEVICES_H
#define UACCEL_MACHINE_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `begin` before all else; false: it has said why not. `cycles`: that jobs of a device took at once, in the CPU's clock;
 * 0 for a device that works while time passes. The library's symbol is uaccel_machine_devices. */
struct uaccel_machine_devices {
    bool (*begin)(const struct uaccel_bus *memory);
    void (*reset)(void);
    void (*end)(void);
    void (*pass)(uint64_t cycles);
    void (*layer)(uint32_t layer);
    uint32_t (*count)(void);
    uint32_t (*read)(uint32_t device, uint32_t offset);
    void (*write)(uint32_t device, uint32_t offset, uint32_t value);
    uint64_t (*cycles)(uint32_t device);
};

#ifdef __cplusplus
}
#endif

#endif
