/* The devices of a board as its projects know them: uaccel writes board/devices.c of the board file. */
#ifndef UACCEL_BOARD_DEVICES_H
#define UACCEL_BOARD_DEVICES_H

#include <stdint.h>

enum { UACCEL_NO_INTERRUPT = -1 };

struct uaccel_board_device {
    const char *name;
    uintptr_t base;    /* of the registers; 0 where the board file tells none: the device is an emulator's alone */
    int32_t interrupt; /* or UACCEL_NO_INTERRUPT */
};

extern const struct uaccel_board_device uaccel_board_devices[];
extern const uint32_t uaccel_board_device_count;

/* NULL where there is none of that name. */
const struct uaccel_board_device *uaccel_board_find_device(const char *name);

#endif
