#include "rack.h"

#include <stddef.h>
#include <string.h>

#include "trace.h"

static const uint32_t nothing_there = 0xFFFFFFFFu;

static bool is_time(const struct uaccel_rack_device *device, uint32_t count)
{
    return count >= device->from && count <= device->to;
}

static bool is_refused(struct uaccel_rack_device *device)
{
    device->accesses++;
    return device->fault == UACCEL_FAULT_DMA && is_time(device, device->accesses);
}

static int32_t read_memory(void *context, uint32_t address, void *to, uint32_t bytes)
{
    struct uaccel_rack_device *const device = context;
    const int32_t status = is_refused(device) ? -1 : device->memory.read(device->memory.context, address, to, bytes);
    uaccel_trace_memory(device->model->name, "load", address, bytes, status);
    return status;
}

static int32_t write_memory(void *context, uint32_t address, const void *from, uint32_t bytes)
{
    struct uaccel_rack_device *const device = context;
    const int32_t status = is_refused(device) ? -1 : device->memory.write(device->memory.context, address, from, bytes);
    uaccel_trace_memory(device->model->name, "store", address, bytes, status);
    return status;
}

static void interrupt(void *context, int32_t level)
{
    struct uaccel_rack_device *const device = context;
    device->memory.interrupt(device->memory.context, level);
}

static void span(void *context, const char *engine, uint32_t command, uint64_t begin, uint64_t end)
{
    const struct uaccel_rack_device *const device = context;
    uaccel_timeline_span(device->model->name, engine, command, begin, end);
}

static void reset(struct uaccel_rack_device *device)
{
    device->starts = 0;
    device->accesses = 0;
    device->model->reset(device->model->state, &device->bus);
    if (device->fault == UACCEL_FAULT_VERSION) {
        device->model->inject(device->model->state, UACCEL_FAULT_VERSION);
    }
}

void uaccel_rack_begin(const struct uaccel_bus *memory)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        struct uaccel_rack_device *const device = &uaccel_rack[i];
        device->memory = *memory;
        device->bus.context = device;
        device->bus.read = read_memory;
        device->bus.write = write_memory;
        device->bus.interrupt = interrupt;
        device->bus.span = span;
    }
    uaccel_rack_reset();
}

void uaccel_rack_reset(void)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        reset(&uaccel_rack[i]);
    }
}

struct uaccel_rack_device *uaccel_rack_find(const char *name)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        if (strcmp(uaccel_rack[i].model->name, name) == 0) {
            return &uaccel_rack[i];
        }
    }
    return NULL;
}

static bool has_vanished(const struct uaccel_rack_device *device)
{
    return device->fault == UACCEL_FAULT_VANISH && is_time(device, device->starts);
}

static bool is_a_register(const struct uaccel_rack_device *device, uint32_t offset)
{
    return offset < device->model->window && offset % 4u == 0;
}

uint32_t uaccel_rack_read(struct uaccel_rack_device *device, uint32_t offset)
{
    const bool answers = is_a_register(device, offset) && !has_vanished(device);
    const uint32_t value = answers ? device->model->read(device->model->state, offset) : nothing_there;
    uaccel_trace_register(device->model->name, "read", offset, value);
    return value;
}

void uaccel_rack_write(struct uaccel_rack_device *device, uint32_t offset, uint32_t value)
{
    const struct uaccel_device_model *const model = device->model;
    uaccel_trace_register(model->name, "write", offset, value);
    if (offset == model->start) {
        device->starts++;
        if (device->fault == UACCEL_FAULT_HANG || device->fault == UACCEL_FAULT_ERROR) {
            model->inject(model->state, is_time(device, device->starts) ? device->fault : UACCEL_FAULT_NONE);
        }
    }
    if (is_a_register(device, offset) && !has_vanished(device)) {
        const uint64_t begin = model->cycles(model->state);
        model->write(model->state, offset, value);
        if (offset == model->start) {
            uaccel_timeline_job(model->name, begin, model->cycles(model->state));
        }
    }
}
