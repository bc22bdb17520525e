#include <stdbool.h>
#include <stddef.h>

#include "board_devices.h"

static bool is_same(const char *name, const char *other)
{
    while (*name != '\0' && *name == *other) {
        name++;
        other++;
    }
    return *name == *other;
}

const struct uaccel_board_device *uaccel_board_find_device(const char *name)
{
    for (uint32_t i = 0; i < uaccel_board_device_count; ++i) {
        if (is_same(uaccel_board_devices[i].name, name)) {
            return &uaccel_board_devices[i];
        }
    }
    return NULL;
}
