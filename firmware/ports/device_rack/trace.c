#include "trace.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

static FILE *file, *timeline;
/* Lines of the timeline that are written: who runs a model for days looks at its first inferences. */
static uint32_t timeline_left = 4000000u;

static FILE *opened(const char *path)
{
    FILE *const there = fopen(path, "a");
    if (there != NULL) {
        setvbuf(there, NULL, _IOLBF, BUFSIZ); /* what is under observation may end at any time */
    }
    return there;
}

bool uaccel_trace_open(const char *path)
{
    file = opened(path);
    return file != NULL;
}

bool uaccel_timeline_open(const char *path)
{
    timeline = opened(path);
    return timeline != NULL;
}

void uaccel_timeline_span(const char *name, const char *engine, uint32_t command, uint64_t begin, uint64_t end)
{
    if (timeline != NULL && timeline_left > 0) {
        timeline_left--;
        fprintf(timeline, "%s span %s %" PRIu32 " %" PRIu64 " %" PRIu64 "\n", name, engine, command, begin, end);
    }
}

void uaccel_timeline_job(const char *name, uint64_t begin, uint64_t end)
{
    if (timeline != NULL && timeline_left > 0) {
        timeline_left--;
        fprintf(timeline, "%s job %" PRIu64 " %" PRIu64 "\n", name, begin, end);
    }
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
