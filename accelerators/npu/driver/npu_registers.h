/* The registers, by their offset; docs/reference/npu.md describes them. */
#ifndef NPU_REGISTERS_H
#define NPU_REGISTERS_H

#define NPU_IDENTITY 0x4E505531u
#define NPU_VERSION 0x00010002u

enum {
    NPU_IDENTITY_AT = 0x00,
    NPU_VERSION_AT = 0x04,
    NPU_CONFIG_AT = 0x08, /* and three more: the bytes of each memory */
    NPU_CONTROL_AT = 0x18,
    NPU_STATUS_AT = 0x1C,
    NPU_ERROR_AT = 0x20,
    NPU_ERROR_COMMAND_AT = 0x24,
    NPU_COMMANDS_AT = 0x28,
    NPU_LENGTH_AT = 0x2C,
    NPU_CYCLES_AT = 0x30, /* this read holds the upper half, behind it, until it is read */
    NPU_CYCLES_HIGH_AT = 0x34,
    NPU_INTERRUPT_AT = 0x44,
    NPU_PLACE_AT = 0x48, /* which place the next two are about */
    NPU_BASE_AT = 0x4C,
    NPU_LIMIT_AT = 0x50
};

enum { NPU_START = 1 };
enum { NPU_DONE = 1, NPU_FAILED = 2 }; /* done however a stream ends */

enum { NPU_INTERRUPT_ENABLE = 1, NPU_INTERRUPT_PENDING = 2 }; /* a write of pending takes it back */

enum { NPU_ERROR_STREAM = 1, NPU_ERROR_BUS = 6 };

#endif
