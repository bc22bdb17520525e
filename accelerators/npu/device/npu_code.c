/* Constants that lie in memory as a code: a load unpacks them. docs/reference/npu.md says how each byte is written. */
#include "npu_device.h"

enum { BLOCK = 32, KIND_BITS = 3, PLAIN = 7 };

void NPU_SYMBOL(code_begin)(struct npu_code *code, const struct npu_outside *outside,
                            const struct npu_transfer *transfer)
{
    const struct npu_code begun = {0};
    *code = begun;
    code->bus = outside->bus;
    code->address = outside->places[transfer->place].base + transfer->offset;
    code->left = transfer->run;
    code->size = transfer->pitches[0];
    code->kind = PLAIN;
}

static bool read_on(struct npu_code *code)
{
    const uint32_t bytes = code->left < sizeof code->chunk ? code->left : (uint32_t)sizeof code->chunk;
    if (bytes == 0) {
        return false;
    }
    code->refused = code->bus->read(code->bus->context, code->address, code->chunk, bytes) != 0;
    code->address += bytes;
    code->left = code->refused ? 0 : code->left - bytes;
    code->count = code->refused ? 0 : 8u * bytes;
    code->at = 0;
    return !code->refused;
}

/* The lowest bit of each byte first; zeros behind the run's end. */
static uint32_t bit(struct npu_code *code)
{
    code->bit++;
    if (code->at == code->count && !read_on(code)) {
        return 0;
    }
    const uint32_t found = (uint32_t)code->chunk[code->at / 8u] >> (code->at % 8u) & 1u;
    code->at++;
    return found;
}

static uint32_t number(struct npu_code *code, uint32_t count)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < count; ++i) {
        value |= bit(code) << i;
    }
    return value;
}

/* Ones up to a zero, then `kind` bits. Together they count 0, -1, 1, -2, 2 and so on. */
static uint8_t coded(struct npu_code *code)
{
    uint32_t high = 0;
    while (bit(code) != 0) {
        ++high;
    }
    const uint32_t value = high << code->kind | number(code, code->kind);
    code->ones = high;
    return (uint8_t)(value >> 1 ^ (0u - (value & 1u)));
}

uint8_t NPU_SYMBOL(code_byte)(struct npu_code *code)
{
    code->kind = code->number % BLOCK == 0 ? number(code, KIND_BITS) : code->kind;
    code->number++;
    code->ones = 0;
    return code->kind == PLAIN ? (uint8_t)number(code, 8) : coded(code);
}

enum npu_error NPU_SYMBOL(unpack)(const struct npu_outside *outside, const struct npu_transfer *transfer, uint8_t *to)
{
    struct npu_code code;
    NPU_SYMBOL(code_begin)(&code, outside, transfer);
    for (uint32_t i = 0; i < code.size && !code.refused; ++i) {
        to[i] = NPU_SYMBOL(code_byte)(&code);
    }
    while (read_on(&code)) { /* all of the run comes, whether bytes need it or not */
    }
    return code.refused ? NPU_BUS : NPU_OK;
}
