/* The model of the device against streams that nobody has packed: random ones, and good ones with words changed.
 *
 *   fuzz SEED RUNS JOB...   (jobs as the harness reads them)
 *
 * However bad a stream is, the device ends with an error and the command's number, or without one; it touches memory
 * through the bus alone, and writes outputs and scratch memory alone. Sanitizers watch the rest. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uaccel_device.h"

extern const struct uaccel_device_model conveyor_device;

enum { START = 0x08, STATUS = 0x0C, ERROR = 0x10, COMMAND = 0x14, STREAM = 0x18, BYTES = 0x1C, PLACE = 0x20, BASE = 0x24 };
enum { DONE = 1, FAILED = 2, LAST_ERROR = 6 };
enum { CONSTANTS, INPUT, OUTPUT, SCRATCH };
enum { MEMORY = 1 << 16, BEGIN = 0x10000, HEADER_WORDS = 6, PLACE_WORDS = 2, RECORD_WORDS = 32, MOST_PLACES = 64 };

static uint8_t memory[MEMORY];
static uint8_t before[MEMORY];
static uint8_t original[MEMORY];
static uint32_t used, original_used, stream_words, place_count;
static uint32_t bases[MOST_PLACES], sizes[MOST_PLACES], kinds[MOST_PLACES];
static uint64_t state;

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "fuzz: %s\n", what);
        exit(1);
    }
}

/* xorshift64*. */
static uint32_t random_word(void)
{
    state ^= state >> 12;
    state ^= state << 25;
    state ^= state >> 27;
    return (uint32_t)((state * UINT64_C(0x2545F4914F6CDD1D)) >> 32);
}

static uint32_t below(uint32_t limit)
{
    return random_word() % limit;
}

static int32_t read_memory(void *context, uint32_t address, void *to, uint32_t bytes)
{
    const uint32_t at = address - BEGIN;
    (void)context;
    if (at >= used || bytes > used - at) {
        return -1;
    }
    memcpy(to, memory + at, bytes);
    return 0;
}

static int32_t write_memory(void *context, uint32_t address, const void *from, uint32_t bytes)
{
    const uint32_t at = address - BEGIN;
    (void)context;
    if (at >= used || bytes > used - at) {
        return -1;
    }
    memcpy(memory + at, from, bytes);
    return 0;
}

static int32_t line_level;

static void interrupt(void *context, int32_t level)
{
    (void)context;
    line_level = level;
}

static uint32_t read_word(FILE *file)
{
    uint8_t b[4] = {0, 0, 0, 0};
    require(fread(b, 1, sizeof b, file) == sizeof b, "the job is cut off");
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static uint32_t take(uint32_t size)
{
    const uint32_t at = used;
    require(size <= MEMORY - used, "a job that is too large");
    used += size;
    return at;
}

static void read_job(const char *name)
{
    FILE *const file = fopen(name, "rb");
    require(file != NULL, "the job cannot be read");
    used = 0;
    const uint32_t size = read_word(file);
    require(fread(memory + take(size), 1, size, file) == size, "the job is cut off");
    stream_words = size / 4u;
    place_count = read_word(file);
    require(place_count <= MOST_PLACES, "too many places");
    for (uint32_t i = 0; i < place_count; ++i) {
        kinds[i] = read_word(file);
        sizes[i] = read_word(file);
        (void)read_word(file);
        bases[i] = BEGIN + take(sizes[i]);
        const uint32_t given = kinds[i] == CONSTANTS || kinds[i] == INPUT ? sizes[i] : 0;
        require(fread(memory + bases[i] - BEGIN, 1, given, file) == given, "the job is cut off");
    }
    fclose(file);
    original_used = used;
    memcpy(original, memory, used);
}

static void set_word(uint32_t word, uint32_t value)
{
    for (uint32_t i = 0; i < 4; ++i) {
        memory[4u * word + i] = (uint8_t)(value >> 8u * i & 0xFFu);
    }
}

static uint32_t get_word(uint32_t word)
{
    const uint8_t *const b = memory + 4u * word;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Numbers at which something ends, or near the one that is there. */
static uint32_t odd_value(uint32_t value)
{
    static const uint32_t odd[] = {0,    1,     2,      3,      7,          30,         31,         32,        127,       128,
                                   255,  256,   0x8000, 0xFFFF, 0x10000,    0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0xFFFFFFE1,
                                   0xFFFFFFE0, 0xFFFFFF80, 0xFFFFFF7F};
    switch (below(4)) {
    case 0:
        return odd[below(sizeof odd / sizeof odd[0])];
    case 1:
        return value + below(9) - 4u;
    case 2:
        return value ^ 1u << below(32);
    default:
        return random_word();
    }
}

static void change_words(uint32_t first)
{
    for (uint32_t changes = 1u + below(4); changes > 0; --changes) {
        const uint32_t word = first + below(stream_words - first);
        set_word(word, odd_value(get_word(word)));
    }
}

/* Returns whether what the stream says of places is as it was. */
static bool spoil(void)
{
    const uint32_t records = HEADER_WORDS + PLACE_WORDS * place_count;
    switch (below(8)) {
    case 0:
        change_words(0);
        return false;
    case 1: /* records of chance behind a good header; most operations there are */
        for (uint32_t word = records; word + 1u < stream_words; ++word) {
            const bool is_operation = (word - records) % RECORD_WORDS == 0;
            set_word(word, is_operation ? below(6) : (below(3) != 0 ? below(8) : random_word()));
        }
        return true;
    default:
        change_words(records);
        return true;
    }
}

static void require_read_only(void)
{
    for (uint32_t i = 0; i < place_count; ++i) {
        const uint32_t at = bases[i] - BEGIN;
        const bool is_read_only = kinds[i] == CONSTANTS || kinds[i] == INPUT;
        require(!is_read_only || memcmp(memory + at, before + at, sizes[i]) == 0, "what is only read was written");
    }
    require(memcmp(memory, before, 4u * stream_words) == 0, "the stream was written");
}

static uint32_t play(bool wrong_base)
{
    const uint32_t wrong = wrong_base ? below(MOST_PLACES) : MOST_PLACES;
    conveyor_device.write(conveyor_device.state, STREAM, BEGIN);
    conveyor_device.write(conveyor_device.state, BYTES, 4u * stream_words);
    for (uint32_t i = 0; i < place_count; ++i) {
        conveyor_device.write(conveyor_device.state, PLACE, i);
        conveyor_device.write(conveyor_device.state, BASE, i == wrong ? odd_value(bases[i]) : bases[i]);
    }
    conveyor_device.write(conveyor_device.state, START, 1);
    return conveyor_device.read(conveyor_device.state, STATUS);
}

/* Returns the error, 0 for none. */
static uint32_t run_once(bool changed)
{
    static const struct uaccel_bus bus = {NULL, read_memory, write_memory, interrupt, NULL, NULL, NULL};
    memcpy(memory, original, original_used);
    conveyor_device.reset(conveyor_device.state, &bus);
    const bool wrong_base = changed && below(8) == 0;
    const bool places_are_good = (!changed || spoil()) && !wrong_base;
    const uint32_t commands = get_word(4);
    memcpy(before, memory, used);
    const uint32_t status = play(wrong_base);
    const uint32_t error = conveyor_device.read(conveyor_device.state, ERROR);
    const uint32_t command = conveyor_device.read(conveyor_device.state, COMMAND);
    require((status & DONE) != 0 && line_level == 1, "the device does not end");
    require(((status & FAILED) != 0) == (error != 0) && error <= LAST_ERROR, "an error that does not exist");
    require(error == 0 ? command == commands : command < commands || command == 0, "a command that does not exist");
    if (places_are_good) {
        require_read_only();
    }
    return error;
}

int main(int count, char **arguments)
{
    unsigned long seen[LAST_ERROR + 1] = {0};
    require(count >= 4, "fuzz SEED RUNS JOB...");
    state = strtoull(arguments[1], NULL, 10) + 1u;
    const unsigned long runs = strtoul(arguments[2], NULL, 10);
    for (int job = 3; job < count; ++job) {
        read_job(arguments[job]);
        require(run_once(false) == 0, "the stream as it was packed does not run");
        for (unsigned long i = 0; i < runs; ++i) {
            seen[run_once(true)]++;
        }
    }
    for (uint32_t error = 0; error <= LAST_ERROR; ++error) {
        printf("%lu ", seen[error]);
    }
    printf("\n");
    return 0;
}
