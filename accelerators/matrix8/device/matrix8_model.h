/* The parts of matrix8's model: its state, its commands and its time. */
#ifndef MATRIX8_MODEL_H
#define MATRIX8_MODEL_H

#include <stdbool.h>

#include "uaccel_device.h"

/* Other machines of the same kind: other numbers here and in accelerator.py. */
#ifndef MATRIX8_COLUMNS
#define MATRIX8_COLUMNS 8u /* output channels that the array computes at once */
#define MATRIX8_DEPTH 8u   /* values that it multiplies for each of them in a cycle */
#define MATRIX8_BANKS 2u
#define MATRIX8_ACTIVATION_BYTES 16384u
#define MATRIX8_WEIGHT_BYTES 16384u
#define MATRIX8_ACCUMULATOR_BYTES 16384u
#define MATRIX8_PARAMETER_BYTES 6144u
#define MATRIX8_ACTIVATION_ALIGNMENT 1u
#define MATRIX8_DMA_BYTES 8u /* a cycle */
#define MATRIX8_DMA_START_UP 16u
#define MATRIX8_START_UP 8u /* of a multiplication */
#define MATRIX8_FILL_BYTES 8u
#endif

#define MATRIX8_BLOCK_BYTES (MATRIX8_COLUMNS * MATRIX8_DEPTH)
#define MATRIX8_PIXEL_BYTES (4u * MATRIX8_COLUMNS)
#define MATRIX8_PARAMETERS_BYTES (3u * MATRIX8_PIXEL_BYTES)

enum { MATRIX8_ACTIVATIONS, MATRIX8_WEIGHTS, MATRIX8_ACCUMULATORS, MATRIX8_PARAMETERS, MATRIX8_MEMORIES };
enum { MATRIX8_LOADER, MATRIX8_ARRAY, MATRIX8_STORER, MATRIX8_ENGINES };
enum {
    MATRIX8_ERROR_NONE,
    MATRIX8_ERROR_COMMAND,
    MATRIX8_ERROR_RANGE,
    MATRIX8_ERROR_ARGUMENT,
    MATRIX8_ERROR_BUS,
    MATRIX8_ERROR_INTERNAL
};

/* Bytes of an on-chip memory that a command touches. */
struct matrix8_use {
    uint32_t memory;
    uint64_t offset;
    uint64_t bytes;
};

/* What a command is worth in time: its engine, its cycles, and the memories that it holds meanwhile. */
struct matrix8_work {
    uint32_t engine;
    uint64_t cycles;
    uint32_t uses_count;
    struct matrix8_use uses[3];
};

/* When each engine and each bank is free again, and how long each engine worked. */
struct matrix8_time {
    uint64_t engine[MATRIX8_ENGINES];
    uint64_t bank[MATRIX8_MEMORIES][MATRIX8_BANKS];
    uint64_t busy[MATRIX8_ENGINES];
};

struct matrix8_window {
    uint32_t kernel_rows, kernel_columns, run;
    uint32_t kernel_row_pitch, kernel_column_pitch, row_pitch, column_pitch;
};

struct matrix8_output {
    uint32_t zero_point, clamp_min, clamp_max, single;
};

/* A command with its arguments as they were when it was given. */
struct matrix8_command {
    uint32_t what;
    uint32_t arguments[8];
    struct matrix8_window window;
    struct matrix8_output output;
};

/* On-chip memory and the way out. */
struct matrix8_chip {
    const struct uaccel_bus *bus;
    uint8_t *memory[MATRIX8_MEMORIES];
};

uint32_t matrix8_model_memory_bytes(uint32_t memory);

/* Does a command and says what it is worth; or says what is wrong with it. What lies on chip is untouched then, unless
 * the bus refuses a later row of a transfer. */
uint32_t matrix8_model_do(struct matrix8_chip *chip, const struct matrix8_command *command, struct matrix8_work *work);

/* The output stage for one sum. */
int8_t matrix8_model_scaled(uint32_t sum, int32_t multiplier, int32_t shift, const struct matrix8_output *output);

/* The command begins when its engine and all banks that it touches are free. */
void matrix8_model_spend(struct matrix8_time *time, const struct matrix8_work *work);

/* From the first command's beginning to the last one's end. */
uint64_t matrix8_model_elapsed(const struct matrix8_time *time);

#endif
