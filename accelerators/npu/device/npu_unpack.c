/* Constants that lie in memory as a code: a load unpacks them. docs/npu.md says how each byte is written. */
#include "npu_device.h"

enum { BLOCK = 32, KIND_BITS = 3, PLAIN = 7, CHUNK = 64 };

/* The bits of a run, the lowest of each byte first; zeros behind its end. */
struct bits {
    const struct uaccel_bus *bus;
    uint32_t address, left; /* what was not read yet */
    uint8_t chunk[CHUNK];
    uint32_t at, count; /* in bits, of the chunk */
    bool refused;
};

static bool read_on(struct bits *bits)
{
    const uint32_t bytes = bits->left < CHUNK ? bits->left : CHUNK;
    if (bytes == 0) {
        return false;
    }
    bits->refused = bits->bus->read(bits->bus->context, bits->address, bits->chunk, bytes) != 0;
    bits->address += bytes;
    bits->left = bits->refused ? 0 : bits->left - bytes;
    bits->count = bits->refused ? 0 : 8u * bytes;
    bits->at = 0;
    return !bits->refused;
}

static uint32_t bit(struct bits *bits)
{
    if (bits->at == bits->count && !read_on(bits)) {
        return 0;
    }
    const uint32_t found = (uint32_t)bits->chunk[bits->at / 8u] >> (bits->at % 8u) & 1u;
    bits->at++;
    return found;
}

static uint32_t number(struct bits *bits, uint32_t count)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i) {
        value |= bit(bits) << i;
    }
    return value;
}

/* Ones up to a zero, then `kind` bits. Together they count 0, -1, 1, -2, 2 and so on. */
static uint8_t coded(struct bits *bits, uint32_t kind)
{
    uint32_t high = 0;
    while (bit(bits) != 0) {
        ++high;
    }
    const uint32_t value = high << kind | number(bits, kind);
    return (uint8_t)(value >> 1 ^ (0u - (value & 1u)));
}

enum npu_error NPU_SYMBOL(unpack)(const struct npu_outside *outside, const struct npu_transfer *transfer, uint8_t *to)
{
    struct bits bits = {outside->bus, 0, transfer->run, {0}, 0, 0, false};
    uint32_t kind = PLAIN;
    bits.address = outside->places[transfer->place].base + transfer->offset;
    for (uint32_t i = 0; i < transfer->pitches[0] && !bits.refused; ++i) {
        kind = i % BLOCK == 0 ? number(&bits, KIND_BITS) : kind;
        to[i] = kind == PLAIN ? (uint8_t)number(&bits, 8) : coded(&bits, kind);
    }
    while (read_on(&bits)) { /* all of the run comes, whether bytes need it or not */
    }
    return bits.refused ? NPU_BUS : NPU_OK;
}
