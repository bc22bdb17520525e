#include "uaccel_tensors.h"

#include <string.h>

#include "uaccel_frame.h"

uint32_t uaccel_tensors_bytes(const struct uaccel_tensor *tensors, uint32_t count)
{
    uint32_t bytes = 0;
    for (uint32_t i = 0; i < count; ++i) {
        bytes += tensors[i].bytes;
    }
    return bytes;
}

uint32_t uaccel_tensors_crc(uint32_t crc, const struct uaccel_tensor *tensors, uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        crc = uaccel_crc32(crc, tensors[i].data, tensors[i].bytes);
    }
    return crc;
}

void uaccel_tensors_write(const struct uaccel_tensor *tensors, uint32_t count, uint32_t offset, const uint8_t *from,
                          uint32_t bytes)
{
    uint32_t base = 0;
    for (uint32_t i = 0; i < count && bytes > 0; ++i) {
        if (offset < base + tensors[i].bytes) {
            const uint32_t room = base + tensors[i].bytes - offset;
            const uint32_t part = bytes < room ? bytes : room;
            memcpy((uint8_t *)tensors[i].data + (offset - base), from, (size_t)part);
            offset += part;
            from += part;
            bytes -= part;
        }
        base += tensors[i].bytes;
    }
}
