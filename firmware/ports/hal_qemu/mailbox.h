/* How firmware under QEMU reaches a device's model, which a plugin of QEMU runs (qemu_device/device.c).
 *
 * The firmware leaves a request in the mailbox, in memory that the plugin shares, and calls uaccel_mailbox_rung. Just
 * before that function's first instruction the plugin serves the request: the next load finds the answer. */
#ifndef UACCEL_MAILBOX_H
#define UACCEL_MAILBOX_H

#include <stdint.h>

enum { UACCEL_MAILBOX_NAME_BYTES = 64 };

enum uaccel_mailbox_request {
    UACCEL_MAILBOX_SERVED, /* whatever was asked for: nobody else writes this */
    UACCEL_MAILBOX_FIND,   /* `name`: its number comes as `value`, or all ones */
    UACCEL_MAILBOX_READ,   /* the register at `offset` of device `device`: comes as `value` */
    UACCEL_MAILBOX_WRITE,  /* and gets `value` */
    UACCEL_MAILBOX_RESET   /* the firmware has started: all devices as after power-on */
};

/* Little endian on both sides. */
struct uaccel_mailbox {
    uint32_t request;
    uint32_t device;
    uint32_t offset;
    uint32_t value;
    char name[UACCEL_MAILBOX_NAME_BYTES]; /* with a zero at its end */
};

#endif
