#include "board_devices.h"

#include <stddef.h>
#include <string.h>

const struct uaccel_board_device *uaccel_board_find_device(const char *name)
{
    for (uint32_t i = 0; i < uaccel_board_device_count; ++i) {
        if (strcmp(uaccel_board_devices[i].name, name) == 0) {
            return &uaccel_board_devices[i];
        }
    }
    return NULL;
}
