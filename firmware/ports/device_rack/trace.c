#include "trace.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static FILE *file;

bool uaccel_trace_open(const char *path)
{
    file = fopen(path, "a");
    if (file != NULL) {
        setvbuf(file, NULL, _IOLBF, BUFSIZ); /* what is under observation may end at any time */
    }
    return file != NULL;
}

void uaccel_trace_register(const char *name, const char *what, uint32_t offset, uint32_t value)
{
    if (file != NULL) {
        fprintf(file, "%s %s 0x%04" PRIx32 " = 0x%08" PRIx32 "\n", name, what, offset, value);
    }
}

void uaccel_trace_memory(const char *name, const char *what, uint32_t address, uint32_t bytes, int32_t status)
{
    if (file != NULL) {
        const char *const end = status == 0 ? "" : " refused";
        fprintf(file, "%s %s 0x%08" PRIx32 " %" PRIu32 " bytes%s\n", name, what, address, bytes, end);
    }
}
