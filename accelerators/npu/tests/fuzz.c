/* Streams of random commands: whatever they hold, the job ends, with an error that the page names.
 *
 *   fuzz SEED STREAMS    prints how many streams ended with each error, from 0 on
 *
 * Fields are mostly small, so that commands are executed, and now and then anything; a stream may be damaged in some of
 * its bits besides, or cut off. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uaccel_device.h"

extern const struct uaccel_device_model npu_device;

enum { MEMORY = 4096, STREAM_AT = 0x10000, WORDS = 400, ERRORS = 9, BAD_STREAM = 1, PLACES = 4 };
enum { CONTROL = 0x18, STATUS = 0x1C, ERROR = 0x20, FAILED = 0x24, COMMANDS = 0x28, LENGTH = 0x2C, PLACE = 0x48 };

static uint8_t memory[MEMORY];
static uint32_t stream[WORDS];
static uint32_t stream_words;
static uint64_t seed;

static uint32_t random_word(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return (uint32_t)(seed >> 16);
}

static uint32_t below(uint32_t most)
{
    return random_word() % most;
}

static int32_t read_bus(void *context, uint32_t address, void *to, uint32_t bytes)
{
    (void)context;
    if (address >= STREAM_AT && (uint64_t)address + bytes <= STREAM_AT + 4u * (uint64_t)stream_words) {
        memcpy(to, (const uint8_t *)stream + (address - STREAM_AT), bytes);
        return 0;
    }
    if ((uint64_t)address + bytes > MEMORY) {
        return -1;
    }
    memcpy(to, memory + address, bytes);
    return 0;
}

static int32_t write_bus(void *context, uint32_t address, const void *from, uint32_t bytes)
{
    (void)context;
    if ((uint64_t)address + bytes > MEMORY) {
        return -1;
    }
    memcpy(memory + address, from, bytes);
    return 0;
}

static void interrupt(void *context, int32_t level)
{
    (void)context;
    (void)level;
}

/* Mostly small, sometimes at a border, seldom anything. */
static uint32_t number(uint32_t usual)
{
    static const uint32_t borders[] = {0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x10000, 0x7FFFFFFF, 0xFFFFFFFF};
    const uint32_t kind = below(200);
    if (kind == 0) {
        return random_word();
    }
    return kind == 1 ? borders[below(sizeof borders / sizeof borders[0])] : 1u + below(usual);
}

static uint32_t halves(uint32_t low, uint32_t high)
{
    return (number(low) & 0xFFFFu) | number(high) << 16;
}

static uint32_t tokens(uint32_t opcode)
{
    const uint32_t all = below(8) == 0 ? 15u : opcode == 1 ? 10u : opcode == 2 ? 5u : 15u;
    return below(4) == 0 ? (random_word() & all) << 8 : 0;
}

static void transfer(uint32_t *w)
{
    const uint32_t run = 1u + below(30), runs = 1u + below(4);
    w[1] = below(PLACES) | (below(4) == 0 ? below(3) << 8 : 0);
    w[2] = number(1000) - 1u;
    w[3] = number(1000) - 1u;
    w[4] = below(50) == 0 ? number(4000) : run;
    w[5] = runs | (1u + below(4)) << 16;
    w[6] = number(60);
    w[7] = number(200);
    w[8] = run + number(4) - 1u;
    w[9] = (run + 4u) * runs + number(8);
}

static void window(uint32_t *w, uint32_t read, uint32_t channels)
{
    const uint32_t columns = 1u + below(6), outputs = 1u + below(5);
    const uint32_t pixel = read + below(3), out_pixel = channels + below(3);
    w[1] = number(2000) - 1u;
    w[2] = columns * pixel + below(4);
    w[3] = pixel;
    w[4] = (1u + below(6)) | columns << 16;
    w[5] = halves(4, 4);
    w[6] = (1u + below(3)) | (1u + below(3)) << 8 | (1u + below(2)) << 16 | (1u + below(2)) << 24;
    w[7] = ((1u - below(4)) & 0xFFFFu) | (1u - below(4)) << 16;
    w[8] = 4096u + number(2000);
    w[9] = outputs * out_pixel + below(4);
    w[10] = out_pixel | channels << 16;
    w[11] = (1u + below(5)) | outputs << 16;
    if (below(40) == 0) {
        w[1 + below(11)] = number(70000);
    }
}

static void finish(uint32_t *w, bool adds)
{
    w[12] = number(3000) - 1u;
    w[13] = number(3000) - 1u;
    w[16] = random_word();
    if (below(4) == 0) {
        w[0] |= 1u << 19;
    }
    if (adds) {
        w[0] |= 1u << 18 | below(2) << 20;
        w[17] = number(3000);
        w[18] = number(50);
        w[19] = number(10) & 0xFFFFu;
        w[20] = number(3000);
    }
}

static void convolve(uint32_t *w)
{
    const uint32_t run = 1u + below(20), kind = below(6);
    window(w, run, 1u + below(20));
    finish(w, kind == 0);
    w[3] |= run << 16;
    const uint32_t kernel = (w[5] & 0xFFFFu) * (w[5] >> 16), steps = (kernel * run + 15u) / 16u;
    w[15] = kind == 2 ? (steps - 1u) << 16 | 1u : steps << 16;
    if (kind == 1 || kind == 2) {
        w[0] |= 1u << 16;
        w[14] = 4u * below(100);
        w[0] |= below(2) << 21;
        w[19] |= below(256) << 16;
    }
    if (kind == 3) {
        w[0] |= 1u << 17;
        w[8] = w[9] = w[13] = 0;
        w[10] &= 0xFFFF0000u;
        w[16] &= 0xFFu;
    }
}

static void depthwise(uint32_t *w)
{
    const uint32_t channels = 1u + below(20), multiplier = 1u + below(3);
    window(w, (channels - 1u) / multiplier + 1u, channels);
    finish(w, below(6) == 0);
    w[3] |= multiplier << 16;
}

static void pool(uint32_t *w)
{
    const uint32_t channels = 1u + below(20);
    window(w, channels, channels);
    w[0] |= below(2) << 16;
    w[12] = random_word() << 16;
}

static void add(uint32_t *w)
{
    for (uint32_t i = 1; i < 8; i += 2) {
        w[i] = number(2000);
    }
    w[2] = w[4] = number(200);
    w[6] = w[7] + number(8);
    w[8] = number(4);
    w[9] = number(3000);
    w[0] |= below(2) << 20;
}

static void lookup(uint32_t *w)
{
    w[1] = number(2000);
    w[2] = number(200);
    w[3] = number(2000);
    w[5] = number(2000);
    w[4] = w[5] + number(8);
    w[6] = number(4);
    w[7] = number(3000);
}

static void pack(uint32_t *w)
{
    w[0] |= below(2) << 16;
    w[1] = number(2000);
    w[2] = number(60);
    w[3] = halves(40, 40);
    w[4] = number(3000);
}

static void one_command(void)
{
    static const uint32_t sizes[] = {1, 10, 10, 21, 21, 13, 10, 1, 8, 5};
    const uint32_t opcode = 1u + below(9);
    uint32_t *const w = stream + stream_words;
    memset(w, 0, 4u * sizes[opcode]);
    w[0] = opcode | tokens(opcode);
    if (opcode <= 2) {
        transfer(w);
    } else if (opcode == 3) {
        convolve(w);
    } else if (opcode == 4) {
        depthwise(w);
    } else if (opcode == 5) {
        pool(w);
    } else if (opcode == 6) {
        add(w);
    } else if (opcode == 8) {
        lookup(w);
    } else if (opcode == 9) {
        pack(w);
    }
    stream_words += sizes[opcode];
}

/* Parameters that make sense, so that commands end well: all words alike do as multiplier, shift and bias. */
static void fill_memory(void)
{
    const uint32_t kind = below(3);
    for (uint32_t i = 0; i < MEMORY; ++i) {
        memory[i] = kind == 0 ? (uint8_t)random_word() : kind == 1 ? 0 : (uint8_t)(i % 4u == 0 ? below(20) : 0);
    }
}

static uint32_t run_one(void)
{
    const struct uaccel_device_model *const npu = &npu_device;
    stream_words = 0;
    for (uint32_t i = 1u + below(12); i > 0; --i) {
        one_command();
    }
    for (uint32_t i = below(10) == 0 ? below(4) : 0; i > 0; --i) {
        stream[below(stream_words)] ^= 1u << below(32);
    }
    fill_memory();
    for (uint32_t place = 0; place < PLACES; ++place) {
        npu->write(npu->state, PLACE, place);
        npu->write(npu->state, PLACE + 4u, place * 1000u);
        npu->write(npu->state, PLACE + 8u, place == 3 ? 2000 : 1500);
    }
    npu->write(npu->state, COMMANDS, STREAM_AT);
    npu->write(npu->state, LENGTH, 4u * stream_words - (below(40) == 0 ? below(8) : 0));
    npu->write(npu->state, CONTROL, 1);
    const uint32_t error = npu->read(npu->state, ERROR), failed = npu->read(npu->state, FAILED);
    const bool is_about_one = failed < stream_words || (error == BAD_STREAM && failed == UINT32_MAX);
    const bool is_done = npu->read(npu->state, STATUS) == (error != 0 ? 3u : 1u);
    const bool agrees = is_done && (error == 0 ? failed == UINT32_MAX : is_about_one);
    if (error >= ERRORS || !agrees) {
        printf("error %u at %u\n", (unsigned)error, (unsigned)failed);
        exit(1);
    }
    npu->write(npu->state, STATUS, 0);
    return error;
}

int main(int argc, char **argv)
{
    const struct uaccel_bus bus = {NULL, read_bus, write_bus, interrupt, NULL, NULL, NULL};
    uint32_t counts[ERRORS] = {0};
    if (argc != 3) {
        return 2;
    }
    seed = strtoull(argv[1], NULL, 10) * 0x9E3779B97F4A7C15u + 1u;
    npu_device.reset(npu_device.state, &bus);
    for (unsigned long i = strtoul(argv[2], NULL, 10); i > 0; --i) {
        counts[run_one()]++;
    }
    for (uint32_t i = 0; i < ERRORS; ++i) {
        printf("%u ", (unsigned)counts[i]);
    }
    printf("\n");
    return 0;
}
