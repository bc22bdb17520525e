/* The driver and the model of its device in one process, for one stream:
 *
 *   harness play JOB OUTPUTS   runs it; stdout gets "status N", "failure TEXT", "account CALLS CYCLES"
 *   harness damage JOB         lets the driver see it damaged in every bit, and cut at every length
 *
 * JOB: the stream's length and bytes, how many places, and for each its kind, length, whether it is told, and, of
 * constants and inputs, bytes. Numbers are 32-bit words. Memory that the device must not write is looked after. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conveyor.h"
#include "rack.h"
#include "uaccel_hal.h"

#define SECTION(name) __attribute__((section(name), aligned(16)))

extern const struct uaccel_device_model conveyor_device;

struct uaccel_rack_device uaccel_rack[] = {{.model = &conveyor_device}};
const uint32_t uaccel_rack_count = 1;

enum { CONSTANTS, INPUT, OUTPUT, SCRATCH, KINDS };
enum { GUARD = 32, GUARD_BYTE = 0xA5, OUTPUT_BYTE = 0x55 };

struct memory {
    uint8_t *bytes;
    uint32_t size, used;
};

struct place {
    uint32_t kind, size, told;
    uint8_t *bytes;
    uint8_t *before;
};

static uint8_t arena[1 << 20] SECTION("uaccel_arena");
static uint8_t io[1 << 20] SECTION("uaccel_io");
static uint8_t constants[1 << 21] SECTION("uaccel_device_constants");

static struct memory memories[] = {
    {constants, sizeof constants, 0}, {io, sizeof io, 0}, {io, sizeof io, 0}, {arena, sizeof arena, 0}};
static struct place places[CONVEYOR_PLACES];
static uint32_t place_count;
static uint8_t *stream;
static uint32_t stream_size;

void uaccel_account_layer(uint32_t layer)
{
    (void)layer;
}

void uaccel_account(uint32_t calls, uint64_t cycles)
{
    printf("account %lu %llu\n", (unsigned long)calls, (unsigned long long)cycles);
}

static bool quiet;

void uaccel_account_failure(const char *text)
{
    if (!quiet) {
        printf("failure %s\n", text);
    }
}

static void require(bool condition, const char *what)
{
    if (!condition) {
        fprintf(stderr, "harness: %s\n", what);
        exit(2);
    }
}

static uint32_t read_word(FILE *file)
{
    uint8_t b[4] = {0, 0, 0, 0};
    require(fread(b, 1, sizeof b, file) == sizeof b, "the job is cut off");
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Room between two guards; inputs and outputs share theirs. */
static uint8_t *take(uint32_t kind, uint32_t size)
{
    struct memory *const memory = &memories[kind == OUTPUT ? INPUT : kind];
    uint8_t *const bytes = memory->bytes + memory->used + GUARD;
    require(memory->used + size + 2u * GUARD <= memory->size, "the job needs more memory than there is");
    memset(bytes - GUARD, GUARD_BYTE, size + 2u * GUARD);
    memset(bytes, OUTPUT_BYTE, size);
    memory->used += size + 2u * GUARD;
    return bytes;
}

static void read_bytes(FILE *file, uint8_t *to, uint32_t size)
{
    require(fread(to, 1, size, file) == size, "the job is cut off");
}

static void read_place(FILE *file, struct place *place)
{
    place->kind = read_word(file);
    place->size = read_word(file);
    place->told = read_word(file);
    require(place->kind < KINDS, "a place of no kind");
    place->bytes = take(place->kind, place->size);
    if (place->kind == CONSTANTS || place->kind == INPUT) {
        read_bytes(file, place->bytes, place->size);
    }
    place->before = malloc(place->size + 1u);
    require(place->before != NULL, "no memory");
    memcpy(place->before, place->bytes, place->size);
}

static void read_job(const char *name)
{
    FILE *const file = fopen(name, "rb");
    require(file != NULL, "the job cannot be read");
    stream_size = read_word(file);
    stream = take(CONSTANTS, stream_size);
    read_bytes(file, stream, stream_size);
    place_count = read_word(file);
    require(place_count <= CONVEYOR_PLACES, "too many places");
    for (uint32_t i = 0; i < place_count; ++i) {
        read_place(file, &places[i]);
    }
    fclose(file);
}

static bool is_guarded(const uint8_t *bytes, uint32_t size)
{
    for (uint32_t i = 0; i < GUARD; ++i) {
        if (bytes[size + i] != GUARD_BYTE || bytes[(int32_t)i - GUARD] != GUARD_BYTE) {
            return false;
        }
    }
    return true;
}

static void require_untouched(void)
{
    for (uint32_t i = 0; i < place_count; ++i) {
        const struct place *const place = &places[i];
        const bool is_read_only = place->kind == CONSTANTS || place->kind == INPUT;
        require(is_guarded(place->bytes, place->size), "memory beside a place was written");
        require(!is_read_only || memcmp(place->bytes, place->before, place->size) == 0, "what is only read was written");
    }
    require(is_guarded(stream, stream_size), "memory beside the stream was written");
}

static int32_t tell_places(void)
{
    int32_t status = 0;
    for (uint32_t i = 0; i < place_count && status == 0; ++i) {
        status = places[i].told ? conveyor_place(i, places[i].bytes) : 0;
    }
    return status;
}

static int32_t as_generated_code_does_it(void *device)
{
    int32_t status = TVMDeviceConveyorActivate(device);
    if (status != 0) {
        return status;
    }
    status = TVMDeviceConveyorOpen(device);
    if (status == 0) {
        status = tell_places();
        status = status != 0 ? status : conveyor_play(stream, stream_size);
        const int32_t closed = TVMDeviceConveyorClose(device);
        status = status != 0 ? status : closed;
    }
    (void)TVMDeviceConveyorDeactivate(device);
    return status;
}

static void play(void *device, const char *outputs)
{
    const int32_t status = as_generated_code_does_it(device);
    FILE *const file = fopen(outputs, "wb");
    require(file != NULL, "the outputs cannot be written");
    for (uint32_t i = 0; i < place_count; ++i) {
        const uint32_t size = places[i].kind == OUTPUT ? places[i].size : 0;
        require(fwrite(places[i].bytes, 1, size, file) == size, "the outputs cannot be written");
    }
    require(fclose(file) == 0, "the outputs cannot be written");
    require_untouched();
    printf("status %ld\n", (long)status);
}

/* In memory of exactly that size, so that a sanitizer sees who reads beyond it. */
static void require_refused(const uint8_t *bytes, uint32_t size)
{
    uint8_t *const copy = malloc(size + 1u);
    require(copy != NULL, "no memory");
    uint8_t *const given = copy + 1; /* no byte behind it, and at an odd address */
    memcpy(given, bytes, size);
    require(tell_places() == 0, "places were not taken");
    require(conveyor_play(given, size) == UACCEL_ACCELERATOR_STREAM, "a damaged stream was not refused");
    free(copy);
}

static void damage(void *device)
{
    require(TVMDeviceConveyorActivate(device) == 0, "the device does not start");
    quiet = true;
    for (uint32_t bit = 0; bit < 8u * stream_size; ++bit) {
        stream[bit / 8u] ^= (uint8_t)(1u << bit % 8u);
        require_refused(stream, stream_size);
        stream[bit / 8u] ^= (uint8_t)(1u << bit % 8u);
    }
    for (uint32_t size = 0; size < stream_size; ++size) {
        require_refused(stream, size);
    }
    require_refused(stream, stream_size + 4u);
    require(uaccel_rack[0].starts == 0, "the device was started");
    printf("status 0\n");
}

int main(int count, char **arguments)
{
    require(count >= 3, "harness play JOB OUTPUTS, or harness damage JOB");
    read_job(arguments[2]);
    void *const device = uaccel_hal_device("conveyor");
    if (strcmp(arguments[1], "damage") == 0) {
        damage(device);
    } else {
        require(count == 4, "harness play JOB OUTPUTS");
        play(device, arguments[3]);
    }
    for (uint32_t i = 0; i < place_count; ++i) {
        free(places[i].before);
    }
    return 0;
}
