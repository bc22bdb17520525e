/* Devices from shared libraries: RTL that was verilated, or models that link libraries of their own. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "rack.h"

enum { PATH_BYTES = 4096, NAME_BYTES = 128, REASON_BYTES = 512 };

static char reason[REASON_BYTES];

static const char *wrong(const char *what)
{
    snprintf(reason, sizeof reason, "%s", what == NULL ? "unknown reason" : what);
    return reason;
}

/* "NAME=FILE" of so many characters. */
static const char *take(const char *text, size_t length)
{
    char name[NAME_BYTES];
    char path[PATH_BYTES];
    const char *const equals = memchr(text, '=', length);
    const size_t name_length = equals == NULL ? 0 : (size_t)(equals - text);
    if (equals == NULL || name_length + sizeof "_device" > sizeof name || length - name_length > sizeof path) {
        return wrong("wanted NAME=FILE");
    }
    snprintf(name, sizeof name, "%.*s", (int)name_length, text);
    snprintf(path, sizeof path, "%.*s", (int)(length - name_length - 1), equals + 1);
    struct uaccel_rack_device *const device = uaccel_rack_find(name);
    if (device == NULL) {
        return NULL; /* of another model's accelerators */
    }
    void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return wrong(dlerror());
    }
    memcpy(name + name_length, "_device", sizeof "_device");
    const struct uaccel_device_model *const model = dlsym(library, name);
    if (model == NULL) {
        return wrong(dlerror());
    }
    device->model = model;
    return NULL;
}

const char *uaccel_rack_libraries(const char *names)
{
    const char *failed = NULL;
    while (failed == NULL && *names != '\0') {
        const size_t length = strcspn(names, ",");
        failed = take(names, length);
        names += length + (names[length] == ',' ? 1 : 0);
    }
    return failed;
}
