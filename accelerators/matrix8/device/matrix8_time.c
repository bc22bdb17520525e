/* Time: three engines, each in the order of its commands, which wait for each other at the banks that they share. */
#include "matrix8_model.h"

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static uint32_t bank_of(const struct matrix8_use *use, uint64_t byte)
{
    return (uint32_t)((use->offset + byte) / (matrix8_model_memory_bytes(use->memory) / MATRIX8_BANKS));
}

void matrix8_model_spend(struct matrix8_time *time, const struct matrix8_work *work)
{
    uint64_t start = time->engine[work->engine];
    for (uint32_t i = 0; i < work->uses_count; ++i) {
        const struct matrix8_use *const use = &work->uses[i];
        for (uint32_t bank = bank_of(use, 0); bank <= bank_of(use, use->bytes - 1u); ++bank) {
            start = later(start, time->bank[use->memory][bank]);
        }
    }
    for (uint32_t i = 0; i < work->uses_count; ++i) {
        const struct matrix8_use *const use = &work->uses[i];
        for (uint32_t bank = bank_of(use, 0); bank <= bank_of(use, use->bytes - 1u); ++bank) {
            time->bank[use->memory][bank] = start + work->cycles;
        }
    }
    time->engine[work->engine] = start + work->cycles;
    time->busy[work->engine] += work->cycles;
}

uint64_t matrix8_model_elapsed(const struct matrix8_time *time)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < MATRIX8_ENGINES; ++i) {
        end = later(end, time->engine[i]);
    }
    return end;
}
