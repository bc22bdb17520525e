/* Device models in their place, be it the host's process, a plugin of QEMU or a unit test: each with its registers, its
 * bus, and whatever shall be wrong with it. */
#ifndef UACCEL_RACK_H
#define UACCEL_RACK_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_device.h"

struct uaccel_rack_device {
    const struct uaccel_device_model *model;
    /* The rest is the rack's. */
    struct uaccel_bus memory; /* the place's */
    struct uaccel_bus bus;    /* the model's: that memory, unless it shall fail */
    enum uaccel_device_fault fault;
    uint32_t from; /* the first start of a job, or the first access to memory, that fails */
    uint32_t to;   /* the last one; UINT32_MAX: so do all after it */
    uint32_t starts;
    uint32_t accesses;
    bool is_open;
    uint64_t rest; /* of the CPU's time that made no whole cycle of the device */
    struct {
        bool begun;
        bool interrupted; /* the device has said that it ended */
        uint64_t begin;
        uint64_t end;
    } job; /* of a device that works while time passes */
};

/* What is in the rack. For firmware projects and plugins uaccel writes the file that defines both. */
extern struct uaccel_rack_device uaccel_rack[];
extern const uint32_t uaccel_rack_count;

/* Put the devices to the memory that they reach, open and reset them. Before all else. False where one cannot be opened;
 * it has said why. */
bool uaccel_rack_begin(const struct uaccel_bus *memory);

/* Close the devices, once, however often it is called. After all else. */
void uaccel_rack_end(void);

/* As after power-on; faults stay, and count from the beginning again. */
void uaccel_rack_reset(void);

/* NULL where there is none of that name. */
struct uaccel_rack_device *uaccel_rack_find(const char *name);

/* A register that is not there reads as all ones, and a write to it is lost. */
uint32_t uaccel_rack_read(struct uaccel_rack_device *device, uint32_t offset);
void uaccel_rack_write(struct uaccel_rack_device *device, uint32_t offset, uint32_t value);

/* Time passes for all devices: so many cycles of the CPU. */
void uaccel_rack_pass(uint64_t cycles);

/* Whether any device works while time passes. */
bool uaccel_rack_has_clock(void);

/* What drivers do from now on is for this layer. */
void uaccel_rack_layer(uint32_t layer);

/* Take devices from the shared libraries that UACCEL_DEVICE_LIBRARY names, "NAME=FILE" with commas between. NULL, or what
 * is wrong. Where firmware/ports/device_library is not linked there is no such function. */
__attribute__((weak)) const char *uaccel_rack_libraries(const char *names);

/* Let devices fail: "NAME:KIND", or with "@N" behind it from the Nth time on, with "@N-M" to the Mth alone; several of
 * them with commas between.
 * KIND is hang, error or vanish (N counts starts of jobs), dma (N counts accesses to memory) or version (without N).
 * Without N it is the first time, and a device that vanishes has never been there. Counted from the reset that follows.
 * Returns NULL, or what is wrong with the text. */
const char *uaccel_rack_let_fail(const char *faults);

/* The same from the environment: faults from UACCEL_DEVICE_FAULT, and in UACCEL_DEVICE_TRACE the name of a file that
 * every access of a register or of memory adds a line to, in UACCEL_DEVICE_TIMELINE one of when engines worked. Returns false after it has said on stderr what is wrong. */
bool uaccel_rack_environment(void);

#endif
