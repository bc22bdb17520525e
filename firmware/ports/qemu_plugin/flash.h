/* A model of flash memory that a CPU waits for, as the counting plugin runs it beside QEMU.
 *
 * One read of flash brings a line of bytes and takes wait states. The CPU has the line that it executes from, and the
 * latest line that it read data from. Caches keep lines beyond that, for code, for data or for both, and the least
 * recently used one makes room. Prefetch reads the next line of code while this one is executed; what it brings in time
 * comes into no cache, as in the accelerators of flash that have one. A cache of up to 64 lines takes any line at any place;
 * a larger one has two places for a line. */
#ifndef UACCEL_FLASH_H
#define UACCEL_FLASH_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { FLASH_MOST = 4, FLASH_ANYWHERE = 64, FLASH_WAYS = 2 };

/* Lines by number; a set's first line is the one used last. NO_LINE is no line's number. */
struct flash_cache {
    uint64_t *lines;
    size_t sets, ways;
};

struct flash {
    uint64_t begin, end, waits, line;
    struct flash_cache code_cache, data_cache; /* with the same lines, where one cache serves both */
    bool prefetch;
    uint64_t code_line, executed; /* the line that is executed, and how many of its instructions were */
    uint64_t data_line;
};

static const uint64_t NO_LINE = UINT64_MAX;
static struct flash flashes[FLASH_MOST];
static size_t flash_count;

static bool flash_make_cache(struct flash_cache *cache, uint64_t bytes, uint64_t line)
{
    const size_t lines = (size_t)(bytes / line);
    cache->ways = lines <= FLASH_ANYWHERE ? lines : FLASH_WAYS;
    cache->sets = lines <= FLASH_ANYWHERE ? 1 : lines / FLASH_WAYS;
    cache->lines = lines == 0 ? NULL : malloc(cache->sets * cache->ways * sizeof *cache->lines);
    for (size_t i = 0; cache->lines != NULL && i < cache->sets * cache->ways; ++i) {
        cache->lines[i] = NO_LINE;
    }
    return lines == 0 || cache->lines != NULL;
}

enum { FLASH_BEGIN, FLASH_END, FLASH_WAITS, FLASH_LINE, FLASH_CODE, FLASH_DATA, FLASH_BOTH, FLASH_PREFETCH, FLASH_VALUES };

static bool flash_add(const uint64_t *values)
{
    if (flash_count == FLASH_MOST || values[FLASH_LINE] == 0) {
        return false;
    }
    struct flash *const flash = &flashes[flash_count++];
    *flash = (struct flash){.begin = values[FLASH_BEGIN], .end = values[FLASH_END], .waits = values[FLASH_WAITS], .line = values[FLASH_LINE],
                            .prefetch = values[FLASH_PREFETCH] != 0, .code_line = NO_LINE, .data_line = NO_LINE};
    if (!flash_make_cache(&flash->code_cache, values[FLASH_CODE] + values[FLASH_BOTH], flash->line)) {
        return false;
    }
    flash->data_cache = flash->code_cache;
    return values[FLASH_BOTH] != 0 || flash_make_cache(&flash->data_cache, values[FLASH_DATA], flash->line);
}

/* "BEGIN:END:WAITS:LINE:CODE:DATA:BOTH:PREFETCH", for more than one memory with "+" between: addresses, cycles, then
 * bytes of a line and of each cache. */
static bool flash_take(const char *text)
{
    uint64_t values[FLASH_VALUES];
    char behind = '+';
    while (behind == '+') {
        for (size_t i = 0; i < FLASH_VALUES; ++i) {
            char *end;
            values[i] = strtoull(text, &end, 0);
            behind = *end;
            if (end == text || (i + 1 < FLASH_VALUES && behind != ':')) {
                return false;
            }
            text = end + 1;
        }
        if (!flash_add(values)) {
            return false;
        }
    }
    return behind == '\0';
}

static struct flash *flash_at(uint64_t address)
{
    for (size_t i = 0; i < flash_count; ++i) {
        if (address >= flashes[i].begin && address < flashes[i].end) {
            return &flashes[i];
        }
    }
    return NULL;
}

/* Whether the cache has the line; with `keep` it has it from now on. */
static bool flash_cached(struct flash_cache *cache, uint64_t line, bool keep)
{
    if (cache->lines == NULL) {
        return false;
    }
    uint64_t *const set = cache->lines + line % cache->sets * cache->ways;
    size_t at = 0;
    while (at < cache->ways - 1 && set[at] != line) {
        ++at;
    }
    const bool found = set[at] == line;
    if (found || keep) {
        memmove(set + 1, set, at * sizeof *set);
        set[0] = line;
    }
    return found;
}

/* Cycles that the CPU waits before it executes `instructions` of a line. */
static uint64_t flash_fetch(struct flash *flash, uint64_t line, uint64_t instructions)
{
    const bool next = flash->prefetch && line == flash->code_line + 1;
    const uint64_t begun = flash->executed;
    const bool same = line == flash->code_line;
    flash->executed = instructions + (same ? begun : 0);
    if (same) {
        return 0;
    }
    flash->code_line = line;
    const uint64_t left = !next ? flash->waits : flash->waits > begun ? flash->waits - begun : 0;
    return flash_cached(&flash->code_cache, line, left != 0) ? 0 : left;
}

/* Cycles that the CPU waits for data at an address. */
static uint64_t flash_read(struct flash *flash, uint64_t address)
{
    const uint64_t line = address / flash->line;
    const bool same = line == flash->data_line;
    flash->data_line = line;
    return same || flash_cached(&flash->data_cache, line, true) ? 0 : flash->waits;
}

#endif
