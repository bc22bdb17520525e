/* Runs one model over exactly sized memory; model_under_test.h says which. See sanitized.py.
 *
 * Usage: program RUNS. Inputs on stdin, outputs on stdout. Whatever goes wrong is one line on stderr and status 1. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model_under_test.h"

enum { FILLINGS = 3 };

/* Structures of pointers, and the same pointers in a row. */
union inputs {
    INPUTS_STRUCT named;
    void *all[INPUTS + 1];
};
union outputs {
    OUTPUTS_STRUCT named;
    void *all[OUTPUTS];
};

static const size_t input_sizes[] = {INPUT_SIZES};
static const size_t output_sizes[] = {OUTPUT_SIZES};

static void fail(const char *what, long number)
{
    fprintf(stderr, "%s %ld\n", what, number);
    exit(1);
}

static void *exactly(size_t bytes)
{
    void *memory = malloc(bytes);
    if (memory == NULL) {
        fail("out of memory, bytes wanted:", (long)bytes);
    }
    return memory;
}

/* 0: zeros, 1: ones, 2: noise. */
static void fill(void *memory, size_t bytes, int filling)
{
    static uint32_t noise = 1;
    uint8_t *byte = memory;
    for (size_t i = 0; i < bytes; ++i) {
        noise = noise * 1664525u + 1013904223u;
        byte[i] = (uint8_t)(filling == 0 ? 0u : filling == 1 ? 0xFFu : noise >> 24);
    }
}

static void read_inputs(void *inputs[], void *copies[])
{
    for (int i = 0; i < INPUTS; ++i) {
        if (fread(inputs[i], 1, input_sizes[i], stdin) != input_sizes[i]) {
            fail("stdin ended in input", i);
        }
        memcpy(copies[i], inputs[i], input_sizes[i]);
    }
}

static void run(union inputs *inputs, union outputs *outputs, void *workspace, int filling)
{
    POOLS_STRUCT pools;
    pools.arena = workspace;
    fill(workspace, WORKSPACE, filling);
    for (int i = 0; i < OUTPUTS; ++i) {
        fill(outputs->all[i], output_sizes[i], filling);
    }
    RESET();
    const int32_t status = RUN(&inputs->named, &outputs->named, &pools);
    if (status != 0) {
        fail("the model returned", status);
    }
}

int main(int argc, char **argv)
{
    const int runs = argc > 1 ? atoi(argv[1]) : 1;
    union inputs inputs;
    union outputs outputs;
    void *copies[INPUTS + 1], *first[OUTPUTS];
    void *const workspace = exactly(WORKSPACE);
    for (int i = 0; i < INPUTS; ++i) {
        inputs.all[i] = exactly(input_sizes[i]);
        copies[i] = exactly(input_sizes[i]);
    }
    for (int i = 0; i < OUTPUTS; ++i) {
        outputs.all[i] = exactly(output_sizes[i]);
        first[i] = exactly(output_sizes[i]);
    }
    for (int number = 0; number < runs; ++number) {
        read_inputs(inputs.all, copies);
        for (int filling = 0; filling < FILLINGS; ++filling) {
            run(&inputs, &outputs, workspace, filling);
            for (int i = 0; i < INPUTS; ++i) {
                if (memcmp(inputs.all[i], copies[i], input_sizes[i]) != 0) {
                    fail("the run wrote to input", i);
                }
            }
            for (int i = 0; i < OUTPUTS; ++i) {
                if (filling == 0) {
                    memcpy(first[i], outputs.all[i], output_sizes[i]);
                } else if (memcmp(first[i], outputs.all[i], output_sizes[i]) != 0) {
                    fail("former content of the memory shows in output", i);
                }
            }
        }
        for (int i = 0; i < OUTPUTS; ++i) {
            fwrite(outputs.all[i], 1, output_sizes[i], stdout);
        }
    }
    for (int i = 0; i < INPUTS; ++i) {
        free(inputs.all[i]);
        free(copies[i]);
    }
    for (int i = 0; i < OUTPUTS; ++i) {
        free(outputs.all[i]);
        free(first[i]);
    }
    free(workspace);
    return 0;
}
