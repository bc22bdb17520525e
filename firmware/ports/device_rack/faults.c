/* Which devices of the rack shall fail, and how: from a text. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rack.h"
#include "trace.h"

struct kind {
    const char *name;
    enum uaccel_device_fault fault;
    bool by_model;
    bool counts;
    uint32_t first; /* what N is where it is not given */
};

static const struct kind kinds[] = {
    {"hang", UACCEL_FAULT_HANG, true, true, 1},        {"error", UACCEL_FAULT_ERROR, true, true, 1},
    {"vanish", UACCEL_FAULT_VANISH, false, true, 0},   {"dma", UACCEL_FAULT_DMA, false, true, 1},
    {"version", UACCEL_FAULT_VERSION, true, false, 0},
};

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && strncmp(text, word, length) == 0;
}

static struct uaccel_rack_device *find_device(const char *text, size_t length)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        if (is_word(text, length, uaccel_rack[i].model->name)) {
            return &uaccel_rack[i];
        }
    }
    return NULL;
}

static const struct kind *find_kind(const char *text, size_t length)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; ++i) {
        if (is_word(text, length, kinds[i].name)) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* 0 where the text is no number from 1 to 999,999,999. */
static uint32_t number(const char *text, size_t length)
{
    uint32_t value = 0;
    if (length > 9) {
        return 0;
    }
    for (size_t i = 0; i < length; ++i) {
        if (text[i] < '0' || text[i] > '9') {
            return 0;
        }
        value = 10u * value + (uint32_t)(text[i] - '0');
    }
    return value;
}

/* "N", or "N-M": the first and the last time. */
static bool read_times(struct uaccel_rack_device *device, const char *text, size_t length)
{
    const char *const dash = memchr(text, '-', length);
    const size_t first_length = dash == NULL ? length : (size_t)(dash - text);
    device->from = number(text, first_length);
    device->to = dash == NULL ? UINT32_MAX : number(dash + 1, length - first_length - 1);
    return device->from != 0 && device->to >= device->from;
}

static const char *let_one_fail(const char *text, size_t length)
{
    const char *const colon = memchr(text, ':', length);
    if (colon == NULL) {
        return "wanted NAME:KIND or NAME:KIND@N";
    }
    const size_t name_length = (size_t)(colon - text);
    const char *const word = colon + 1;
    const size_t rest = length - name_length - 1;
    const char *const at = memchr(word, '@', rest);
    const size_t word_length = at == NULL ? rest : (size_t)(at - word);
    struct uaccel_rack_device *const device = find_device(text, name_length);
    const struct kind *const kind = find_kind(word, word_length);
    if (device == NULL) {
        return "there is no device of that name";
    }
    if (kind == NULL) {
        return "KIND is none of hang, error, vanish, dma and version";
    }
    if (kind->by_model && device->model->inject == NULL) {
        return "the model of that device cannot fail so: it has no inject function";
    }
    if (at != NULL && !kind->counts) {
        return "that KIND takes no @N";
    }
    device->from = kind->first;
    device->to = UINT32_MAX;
    if (at != NULL && !read_times(device, at + 1, rest - word_length - 1)) {
        return "N is no number from 1 to 999999999, nor N-M two of them in order";
    }
    device->fault = kind->fault;
    return NULL;
}

const char *uaccel_rack_let_fail(const char *faults)
{
    const char *wrong = NULL;
    while (wrong == NULL && *faults != '\0') {
        const size_t length = strcspn(faults, ",");
        wrong = let_one_fail(faults, length);
        faults += length + (faults[length] == ',' ? 1 : 0);
    }
    return wrong;
}

bool uaccel_rack_environment(void)
{
    const char *const trace = getenv("UACCEL_DEVICE_TRACE");
    const char *const timeline = getenv("UACCEL_DEVICE_TIMELINE");
    const char *const faults = getenv("UACCEL_DEVICE_FAULT");
    const char *const libraries = getenv("UACCEL_DEVICE_LIBRARY");
    if (libraries != NULL && uaccel_rack_libraries != NULL) {
        const char *const unloaded = uaccel_rack_libraries(libraries);
        if (unloaded != NULL) {
            fprintf(stderr, "UACCEL_DEVICE_LIBRARY is '%s': %s\n", libraries, unloaded);
            return false;
        }
    }
    const char *const wrong = faults == NULL ? NULL : uaccel_rack_let_fail(faults);
    if (wrong != NULL) {
        fprintf(stderr, "UACCEL_DEVICE_FAULT is '%s': %s\n", faults, wrong);
        return false;
    }
    if (trace != NULL && *trace != '\0' && !uaccel_trace_open(trace)) {
        fprintf(stderr, "cannot write to UACCEL_DEVICE_TRACE=%s\n", trace);
        return false;
    }
    if (timeline != NULL && *timeline != '\0' && !uaccel_timeline_open(timeline)) {
        fprintf(stderr, "cannot write to UACCEL_DEVICE_TIMELINE=%s\n", timeline);
        return false;
    }
    return true;
}
