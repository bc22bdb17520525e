/* What the CPU and the devices of a rack do, line by line, in files. Nothing happens where none was opened. */
#ifndef UACCEL_TRACE_H
#define UACCEL_TRACE_H

#include <stdbool.h>
#include <stdint.h>

/* False where the file cannot be written. */
bool uaccel_trace_open(const char *path);

/* "NAME read 0x0004 = 0x00000001", and "NAME load 0x80001000 64 bytes" with " refused" where it was. */
void uaccel_trace_register(const char *name, const char *what, uint32_t offset, uint32_t value);
void uaccel_trace_memory(const char *name, const char *what, uint32_t address, uint32_t bytes, int32_t status);

/* Another file, of the devices' time: "NAME span ENGINE COMMAND BEGIN END", and "NAME job BEGIN END" behind the spans of a
 * job; in cycles since the device's reset. */
bool uaccel_timeline_open(const char *path);
void uaccel_timeline_span(const char *name, const char *engine, uint32_t command, uint64_t begin, uint64_t end);
void uaccel_timeline_job(const char *name, uint64_t begin, uint64_t end);

#endif
