/* Registers of matrix8, by offset. */
#ifndef MATRIX8_REGISTERS_H
#define MATRIX8_REGISTERS_H

#define MATRIX8_IDENTITY_VALUE 0x4D545838u /* "MTX8" */
#define MATRIX8_VERSION_VALUE 0x00010001u

enum {
    MATRIX8_IDENTITY = 0x00,
    MATRIX8_VERSION = 0x04,
    MATRIX8_STATUS = 0x08,
    MATRIX8_ERROR = 0x0C,    /* what went wrong first: MATRIX8_ERROR_... */
    MATRIX8_ERROR_AT = 0x10, /* the number of that command, from 0 */
    MATRIX8_COMMAND = 0x14,  /* a write puts a command into its queue, with the arguments as they are now */
    MATRIX8_CONTROL = 0x18,  /* 1: forget errors, and count commands and cycles from 0 */
    MATRIX8_COMMANDS = 0x1C, /* done since then */
    MATRIX8_CYCLES = 0x20,   /* from the first command's beginning to the last one's end */
    MATRIX8_BUSY_LOAD = 0x24,
    MATRIX8_BUSY_COMPUTE = 0x28,
    MATRIX8_BUSY_STORE = 0x2C,
    MATRIX8_ARGUMENT = 0x40, /* eight of a command's own */
    MATRIX8_WINDOW = 0x60,   /* seven: kernel rows, kernel columns, run, four pitches */
    MATRIX8_OUTPUT = 0x7C,   /* four: zero point, least, greatest, 1: rounds in single precision */
    MATRIX8_END = 0x8C
};

/* Status. */
enum { MATRIX8_BUSY = 1, MATRIX8_FULL = 2, MATRIX8_FAILED = 4 };

enum { MATRIX8_DO_LOAD = 1, MATRIX8_DO_FILL, MATRIX8_DO_MULTIPLY, MATRIX8_DO_STORE };

enum {
    MATRIX8_ERROR_NONE,
    MATRIX8_ERROR_COMMAND,  /* there is no such command */
    MATRIX8_ERROR_RANGE,    /* it reaches beyond a memory of the device's */
    MATRIX8_ERROR_ARGUMENT, /* an argument means nothing */
    MATRIX8_ERROR_BUS,      /* the bus refuses an access */
    MATRIX8_ERROR_INTERNAL
};

#endif
