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
    if (level != 0 && device->job.begun && !device->job.interrupted) {
        device->job.interrupted = true;
        device->job.end = device->model->cycles(device->model->state);
    }
    device->memory.interrupt(device->memory.context, level);
}

static void span(void *context, const char *engine, uint32_t command, uint64_t begin, uint64_t end)
{
    const struct uaccel_rack_device *const device = context;
    uaccel_timeline_span(device->model->name, engine, command, begin, end);
}

static bool grants(void *context, const void *master, uint32_t address, uint32_t bytes, bool last, uint64_t ahead)
{
    const struct uaccel_rack_device *const device = context;
    return device->memory.grants(device->memory.context, master, address, bytes, last, ahead);
}

static bool constant(void *context, uint32_t address)
{
    const struct uaccel_rack_device *const device = context;
    return device->memory.constant(device->memory.context, address);
}

/* A job of a device that works while time passes: from its start to its interrupt, or else to the last look at it. */
static void end_job(struct uaccel_rack_device *device)
{
    if (device->job.begun) {
        uaccel_timeline_job(device->model->name, device->job.begin, device->job.end);
    }
    device->job.begun = false;
}

static void begin_job(struct uaccel_rack_device *device)
{
    end_job(device);
    device->job.begun = true;
    device->job.interrupted = false;
    device->job.begin = device->model->cycles(device->model->state);
    device->job.end = device->job.begin;
}

static void reset(struct uaccel_rack_device *device)
{
    end_job(device);
    device->rest = 0;
    device->starts = 0;
    device->accesses = 0;
    device->model->reset(device->model->state, &device->bus);
    if (device->fault == UACCEL_FAULT_VERSION) {
        device->model->inject(device->model->state, UACCEL_FAULT_VERSION);
    }
}

bool uaccel_rack_begin(const struct uaccel_bus *memory)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        struct uaccel_rack_device *const device = &uaccel_rack[i];
        device->memory = *memory;
        device->bus.context = device;
        device->bus.read = read_memory;
        device->bus.write = write_memory;
        device->bus.interrupt = interrupt;
        device->bus.span = span;
        device->bus.grants = memory->grants == NULL ? NULL : grants;
        device->bus.constant = memory->constant == NULL ? NULL : constant;
        if (device->model->open != NULL && !device->is_open && device->model->open(device->model->state) != 0) {
            return false;
        }
        device->is_open = true;
    }
    uaccel_rack_reset();
    return true;
}

void uaccel_rack_end(void)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        struct uaccel_rack_device *const device = &uaccel_rack[i];
        end_job(device);
        if (device->is_open && device->model->close != NULL) {
            device->model->close(device->model->state);
        }
        device->is_open = false;
    }
}

void uaccel_rack_reset(void)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        reset(&uaccel_rack[i]);
    }
}

void uaccel_rack_pass(uint64_t cycles)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        struct uaccel_rack_device *const device = &uaccel_rack[i];
        const struct uaccel_device_model *const model = device->model;
        if (model->tick != NULL) {
            const uint64_t whole = model->cpu_clock == 0 ? 1 : model->cpu_clock;
            const uint64_t time = cycles * (model->clock == 0 ? 1 : model->clock) + device->rest;
            device->rest = time % whole;
            model->tick(model->state, time / whole);
        }
    }
}

bool uaccel_rack_has_clock(void)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        if (uaccel_rack[i].model->tick != NULL) {
            return true;
        }
    }
    return false;
}

void uaccel_rack_layer(uint32_t layer)
{
    for (uint32_t i = 0; i < uaccel_rack_count; ++i) {
        if (uaccel_rack[i].model->layer != NULL) {
            uaccel_rack[i].model->layer(uaccel_rack[i].model->state, layer);
        }
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
    if (device->job.begun && !device->job.interrupted) {
        device->job.end = device->model->cycles(device->model->state);
    }
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
        if (offset == model->start && model->tick != NULL) {
            begin_job(device);
        }
        model->write(model->state, offset, value);
        if (offset == model->start && model->tick == NULL) {
            uaccel_timeline_job(model->name, begin, model->cycles(model->state));
        }
    }
}
