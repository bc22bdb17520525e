/* A functional model of an accelerator: what stands in for the hardware wherever there is none.
 *
 * The same source runs inside the host's process, behind QEMU's boards and in plain C unit tests. It sees registers from
 * the one side and a bus from the other. It may take memory from the heap and open files, between `open` and `close`.
 *
 * A model without `tick` is functional: the register write that starts a job does the whole job before it returns, and
 * the next read of the status register says that it is done. How long the hardware would have taken is counted in
 * cycles. A model with `tick` works while the CPU does: a start only starts, and the job goes on as time passes. */
#ifndef UACCEL_DEVICE_H
#define UACCEL_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

/* The memory that the device reaches, and its interrupt line. */
struct uaccel_bus {
    void *context; /* of the functions below */
    /* Copy `bytes` from or to `address`. 0, or -1 where no memory answers at all of these addresses: then nothing was
     * copied, and the model does what the hardware does at a bus error. */
    int32_t (*read)(void *context, uint32_t address, void *to, uint32_t bytes);
    int32_t (*write)(void *context, uint32_t address, const void *from, uint32_t bytes);
    /* Raise (1) or lower (0) the interrupt line. Nothing follows of it where drivers poll. */
    void (*interrupt)(void *context, int32_t level);
    /* Say that one of the device's engines works at a command of a job, from one cycle since reset to another. NULL where
     * nobody wants to know. */
    void (*span)(void *context, const char *engine, uint32_t command, uint64_t begin, uint64_t end);
    /* Whether a beat of so many bytes goes in this cycle, where memory is shared with others; `last` ends its burst. Asked
     * by a device with a clock before it reads or writes, once in each cycle that `master`, one of its own, wants a beat
     * in. `ahead`: cycles by which the device is before the time that has passed. NULL where each beat goes at once. */
    bool (*grants)(void *context, const void *master, uint32_t address, uint32_t bytes, bool last, uint64_t ahead);
    /* Whether device constants lie at this address, which a device may only read: where a chip may have a flash. NULL
     * where none do. */
    bool (*constant)(void *context, uint32_t address);
};

/* What can be wrong with a device, to see that drivers notice. */
enum uaccel_device_fault {
    UACCEL_FAULT_NONE,
    UACCEL_FAULT_HANG,    /* a job that is started never finishes */
    UACCEL_FAULT_ERROR,   /* a job that is started ends at once, with the error status and without results */
    UACCEL_FAULT_VANISH,  /* reads are all ones, writes are lost; made outside the model */
    UACCEL_FAULT_VERSION, /* the version register tells another version */
    UACCEL_FAULT_DMA      /* the bus refuses every access; made outside the model */
};

/* One device. The file device/<anything>.c of accelerator NAME defines
 *   const struct uaccel_device_model NAME_device;
 * and every other name in there that is not static begins with NAME as well: models are linked together. */
struct uaccel_device_model {
    const char *name; /* the accelerator's */
    uint32_t window;  /* bytes of registers, from offset 0 on; those beyond are not there */
    uint32_t start;   /* offset of the register whose write starts a job; faults count by it */
    void *state;      /* memory of the model's own, handed to every function below */
    /* As after power-on. `bus` stays valid. Called before all else, and again whenever the firmware starts anew. */
    void (*reset)(void *state, const struct uaccel_bus *bus);
    /* `offset` is a multiple of 4, below `window`. */
    uint32_t (*read)(void *state, uint32_t offset);
    void (*write)(void *state, uint32_t offset, uint32_t value);
    /* Cycles that jobs took since the last reset. */
    uint64_t (*cycles)(const void *state);
    /* From now until the next reset be as UACCEL_FAULT_HANG, _ERROR or _VERSION says. NULL: none of them can be had. */
    void (*inject)(void *state, enum uaccel_device_fault fault);

    /* What follows may be NULL, or 0. */

    /* Once, before the first reset. 0, or -1 after it has said on stderr what is wrong. */
    int32_t (*open)(void *state);
    /* So many of the device's cycles pass. An access of a register may take some, too. */
    void (*tick)(void *state, uint64_t cycles);
    /* Once, at the end, whatever ends: files are complete after it. */
    void (*close)(void *state);
    /* What drivers do from now on is for this layer of the model. */
    void (*layer)(void *state, uint32_t layer);
    /* The device's clock to the CPU's: `clock` cycles of the device take as long as `cpu_clock` of the CPU. 0: one each. */
    uint32_t clock, cpu_clock;
};

#endif
