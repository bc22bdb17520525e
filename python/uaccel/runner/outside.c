/* Runs a model whose tensors lie apart, and compares all memory around each layer; see outside.py.
 *
 * Usage: program SAMPLES, inputs on stdin. Where a layer changes a byte that is none of its outputs' and none of its
 * scratch memory's, the layer, the memory and the place go to stdout, and the status is 3. A signal counts as memory -1. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define UACCEL_OBSERVE
#include "outside_case.h"

struct range {
    int32_t layer;
    int32_t memory; /* 0: workspace, 1: state */
    size_t offset;
    size_t bytes;
};

static const struct range written[] = {WRITTEN};
static const size_t inputs[][2] = {INPUTS}; /* where each lies in the workspace, and its bytes */

static uint8_t *const memories[] = {MEMORIES};
static const size_t sizes[] = {SIZES};
enum { COUNT = sizeof sizes / sizeof sizes[0] };
static uint8_t *before[COUNT];
static long running;

static void fail(long memory, unsigned long place)
{
    printf("%ld %ld %lu\n", running, memory, place);
    fflush(stdout);
    _Exit(3);
}

static void ended(int number)
{
    fail(-1, (unsigned long)number);
}

void uaccel_layer_begin(const char *model, int32_t layer)
{
    (void)model;
    running = layer;
    for (int32_t i = 0; i < COUNT; ++i) {
        memcpy(before[i], memories[i], sizes[i]);
    }
}

void uaccel_layer_end(const char *model, int32_t layer, int32_t output, const void *data, uint32_t bytes)
{
    (void)model;
    (void)data;
    (void)bytes;
    if (output != 0) {
        return;
    }
    for (size_t i = 0; i < sizeof written / sizeof written[0]; ++i) {
        const struct range *own = &written[i];
        if (own->layer == layer) {
            memcpy(before[own->memory] + own->offset, memories[own->memory] + own->offset, own->bytes);
        }
    }
    for (int32_t i = 0; i < COUNT; ++i) {
        if (memcmp(before[i], memories[i], sizes[i]) != 0) {
            size_t at = 0;
            while (before[i][at] == memories[i][at]) {
                ++at;
            }
            fail(i, (unsigned long)at);
        }
    }
}

int main(int argc, char *argv[])
{
    signal(SIGSEGV, ended);
    signal(SIGBUS, ended);
    signal(SIGFPE, ended);
    for (int32_t i = 0; i < COUNT; ++i) {
        before[i] = malloc(sizes[i]);
        if (before[i] == NULL) {
            return 1;
        }
    }
    for (long run = argc > 1 ? strtol(argv[1], NULL, 10) : 0; run > 0; --run) {
        for (int32_t i = 0; i < COUNT; ++i) { /* by turns, so that no constant that is written is always there */
            memset(memories[i], run % 2 == 0 ? 0x5A : 0xA5, sizes[i]);
        }
        RESET();
        for (size_t i = 0; i + 1 < sizeof inputs / sizeof inputs[0]; ++i) {
            if (fread(memories[0] + inputs[i][0], 1, inputs[i][1], stdin) != inputs[i][1]) {
                return 1;
            }
        }
        if (RUN() != 0) {
            return 2;
        }
    }
    return 0;
}
