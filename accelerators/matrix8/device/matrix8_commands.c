/* The commands: every number is checked against the memories before anything is touched. */
#include "matrix8_model.h"

#include <string.h>

enum { LOAD = 1, FILL, MULTIPLY, STORE };

uint32_t matrix8_model_memory_bytes(uint32_t memory)
{
    switch (memory) {
    case MATRIX8_ACTIVATIONS:
        return MATRIX8_ACTIVATION_BYTES;
    case MATRIX8_WEIGHTS:
        return MATRIX8_WEIGHT_BYTES;
    case MATRIX8_ACCUMULATORS:
        return MATRIX8_ACCUMULATOR_BYTES;
    default:
        return MATRIX8_PARAMETER_BYTES;
    }
}

static uint32_t alignment_of(uint32_t memory)
{
    switch (memory) {
    case MATRIX8_ACTIVATIONS:
        return MATRIX8_ACTIVATION_ALIGNMENT;
    case MATRIX8_WEIGHTS:
        return MATRIX8_BLOCK_BYTES;
    default:
        return MATRIX8_PIXEL_BYTES;
    }
}

static uint64_t rounds(uint64_t amount, uint64_t width)
{
    return (amount + width - 1u) / width;
}

static int32_t word(const uint8_t *bytes)
{
    int32_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* Notes what a command touches; false where that is not in the memory. Nothing in here can overflow: offsets have 32
 * bits, and sizes are sums of products of numbers that were limited before. */
static bool touch(struct matrix8_work *work, uint32_t memory, uint32_t offset, uint64_t bytes)
{
    const struct matrix8_use use = {memory, offset, bytes};
    work->uses[work->uses_count] = use;
    work->uses_count++;
    return bytes > 0 && offset % alignment_of(memory) == 0 && bytes <= matrix8_model_memory_bytes(memory) &&
           offset <= matrix8_model_memory_bytes(memory) - bytes;
}

/* Loads: memory, offset, pitch, address, stride, rows, bytes. */
static uint32_t load(struct matrix8_chip *chip, const uint32_t *a, struct matrix8_work *work)
{
    const uint32_t memory = a[0], offset = a[1], pitch = a[2], address = a[3], stride = a[4], rows = a[5], bytes = a[6];
    if (memory >= MATRIX8_MEMORIES || rows == 0 || (rows > 1u && pitch < bytes)) {
        return MATRIX8_ERROR_ARGUMENT;
    }
    if (!touch(work, memory, offset, (uint64_t)(rows - 1u) * pitch + bytes)) {
        return MATRIX8_ERROR_RANGE;
    }
    for (uint32_t row = 0; row < rows; ++row) {
        uint8_t *const to = chip->memory[memory] + offset + row * pitch;
        if (chip->bus->read(chip->bus->context, address + row * stride, to, bytes) != 0) {
            return MATRIX8_ERROR_BUS;
        }
    }
    work->engine = MATRIX8_LOADER;
    work->cycles = MATRIX8_DMA_START_UP + rows * rounds(bytes, MATRIX8_DMA_BYTES);
    return MATRIX8_ERROR_NONE;
}

/* Fills: memory, offset, bytes, value. */
static uint32_t fill(struct matrix8_chip *chip, const uint32_t *a, struct matrix8_work *work)
{
    if (a[0] >= MATRIX8_MEMORIES) {
        return MATRIX8_ERROR_ARGUMENT;
    }
    if (!touch(work, a[0], a[1], a[2])) {
        return MATRIX8_ERROR_RANGE;
    }
    memset(chip->memory[a[0]] + a[1], (int)(a[3] & 0xFFu), a[2]);
    work->engine = MATRIX8_LOADER;
    work->cycles = rounds(a[2], MATRIX8_FILL_BYTES);
    return MATRIX8_ERROR_NONE;
}

/* A signed byte by its pattern. */
static int32_t signed_byte(uint8_t byte)
{
    return byte < 128 ? byte : byte - 256;
}

/* One pixel's values times the weights of one block of channels. */
static void multiply_pixel(struct matrix8_chip *chip, const struct matrix8_window *window, uint32_t activations,
                           uint32_t weights, uint32_t *sums)
{
    const uint32_t steps = (uint32_t)rounds(window->run, MATRIX8_DEPTH);
    const uint8_t *block = chip->memory[MATRIX8_WEIGHTS] + weights;
    for (uint32_t y = 0; y < window->kernel_rows; ++y) {
        for (uint32_t x = 0; x < window->kernel_columns; ++x) {
            const uint8_t *run = chip->memory[MATRIX8_ACTIVATIONS] + activations;
            run += y * window->kernel_row_pitch + x * window->kernel_column_pitch;
            for (uint32_t step = 0; step < steps; ++step, run += MATRIX8_DEPTH, block += MATRIX8_BLOCK_BYTES) {
                for (uint32_t i = 0; i < MATRIX8_BLOCK_BYTES; ++i) {
                    const int32_t product = signed_byte(run[i % MATRIX8_DEPTH]) * signed_byte(block[i]);
                    sums[i / MATRIX8_DEPTH] += (uint32_t)product;
                }
            }
        }
    }
}

/* Whether a number is one that can be in range, so that products of three cannot overflow. */
static bool sensible(uint32_t number)
{
    return number > 0 && number <= 0xFFFFu;
}

static bool is_sensible(const uint32_t *a, const struct matrix8_window *window)
{
    return sensible(a[3]) && sensible(a[4]) && sensible(a[5]) && sensible(window->kernel_rows) &&
           sensible(window->kernel_columns) && sensible(window->run);
}

/* From the first byte of the first pixel's window to the last of the last one's. */
static uint64_t extent_of(const struct matrix8_window *window, uint32_t rows, uint32_t columns)
{
    return (uint64_t)(rows - 1u) * window->row_pitch + (uint64_t)(columns - 1u) * window->column_pitch +
           (uint64_t)(window->kernel_rows - 1u) * window->kernel_row_pitch +
           (uint64_t)(window->kernel_columns - 1u) * window->kernel_column_pitch +
           rounds(window->run, MATRIX8_DEPTH) * MATRIX8_DEPTH;
}

/* Multiplications: accumulators, activations, weights, rows, columns, blocks, add. */
static uint32_t multiply(struct matrix8_chip *chip, const uint32_t *a, const struct matrix8_window *window,
                         struct matrix8_work *work)
{
    if (!is_sensible(a, window)) {
        return MATRIX8_ERROR_ARGUMENT;
    }
    const uint32_t rows = a[3], columns = a[4], blocks = a[5];
    const uint64_t pixels = (uint64_t)rows * columns;
    const uint64_t steps = (uint64_t)window->kernel_rows * window->kernel_columns * rounds(window->run, MATRIX8_DEPTH);
    if (!touch(work, MATRIX8_ACCUMULATORS, a[0], pixels * blocks * MATRIX8_PIXEL_BYTES) ||
        !touch(work, MATRIX8_ACTIVATIONS, a[1], extent_of(window, rows, columns)) ||
        steps > MATRIX8_WEIGHT_BYTES || !touch(work, MATRIX8_WEIGHTS, a[2], steps * blocks * MATRIX8_BLOCK_BYTES)) {
        return MATRIX8_ERROR_RANGE;
    }
    for (uint32_t i = 0; i < (uint32_t)pixels * blocks; ++i) {
        const uint32_t pixel = i / blocks, block = i % blocks;
        const uint32_t from = pixel / columns * window->row_pitch + pixel % columns * window->column_pitch;
        uint8_t *const to = chip->memory[MATRIX8_ACCUMULATORS] + a[0] + i * MATRIX8_PIXEL_BYTES;
        uint32_t sums[MATRIX8_COLUMNS] = {0};
        if (a[6] != 0) {
            memcpy(sums, to, sizeof sums);
        }
        multiply_pixel(chip, window, a[1] + from, a[2] + block * (uint32_t)steps * MATRIX8_BLOCK_BYTES, sums);
        memcpy(to, sums, sizeof sums);
    }
    work->engine = MATRIX8_ARRAY;
    work->cycles = MATRIX8_START_UP + pixels * blocks * steps;
    return MATRIX8_ERROR_NONE;
}

/* Whether the shifts of these channels mean something, and the multipliers where they are single-precision numbers. */
static bool can_scale(const uint8_t *parameters, uint32_t channels, bool single)
{
    for (uint32_t channel = 0; channel < channels; ++channel) {
        const uint32_t lane = channel % MATRIX8_COLUMNS, block = channel / MATRIX8_COLUMNS;
        const uint8_t *const multiplier = parameters + block * MATRIX8_PARAMETERS_BYTES + MATRIX8_PIXEL_BYTES + 4u * lane;
        const int32_t shift = word(multiplier + MATRIX8_PIXEL_BYTES);
        if (shift < -31 || shift > 30 || (single && word(multiplier) < INT32_C(1) << 30)) {
            return false;
        }
    }
    return true;
}

/* Stores: address, stride, accumulators, parameters, pixels, channels. */
static uint32_t store(struct matrix8_chip *chip, const uint32_t *a, const struct matrix8_output *output,
                      struct matrix8_work *work)
{
    const uint32_t pixels = a[4], channels = a[5];
    if (!sensible(pixels) || !sensible(channels)) {
        return MATRIX8_ERROR_ARGUMENT;
    }
    const uint32_t blocks = (uint32_t)rounds(channels, MATRIX8_COLUMNS);
    if (!touch(work, MATRIX8_ACCUMULATORS, a[2], (uint64_t)pixels * blocks * MATRIX8_PIXEL_BYTES) ||
        !touch(work, MATRIX8_PARAMETERS, a[3], (uint64_t)blocks * MATRIX8_PARAMETERS_BYTES)) {
        return MATRIX8_ERROR_RANGE;
    }
    const uint8_t *const parameters = chip->memory[MATRIX8_PARAMETERS] + a[3];
    if (output->single > 1u || !can_scale(parameters, channels, output->single != 0)) {
        return MATRIX8_ERROR_ARGUMENT;
    }
    for (uint32_t pixel = 0; pixel < pixels; ++pixel) {
        int8_t line[MATRIX8_ACCUMULATOR_BYTES / 4u];
        for (uint32_t channel = 0; channel < channels; ++channel) {
            const uint32_t index = pixel * blocks * MATRIX8_COLUMNS + channel;
            const uint8_t *const of = parameters + channel / MATRIX8_COLUMNS * MATRIX8_PARAMETERS_BYTES +
                                      4u * (channel % MATRIX8_COLUMNS);
            const uint32_t sum = (uint32_t)word(chip->memory[MATRIX8_ACCUMULATORS] + a[2] + 4u * index) + (uint32_t)word(of);
            const int32_t multiplier = word(of + MATRIX8_PIXEL_BYTES), shift = word(of + 2u * MATRIX8_PIXEL_BYTES);
            line[channel] = matrix8_model_scaled(sum, multiplier, shift, output);
        }
        if (chip->bus->write(chip->bus->context, a[0] + pixel * a[1], line, channels) != 0) {
            return MATRIX8_ERROR_BUS;
        }
    }
    const uint32_t width = MATRIX8_DMA_BYTES < MATRIX8_COLUMNS ? MATRIX8_DMA_BYTES : MATRIX8_COLUMNS;
    work->engine = MATRIX8_STORER;
    work->cycles = MATRIX8_DMA_START_UP + pixels * rounds(channels, width);
    return MATRIX8_ERROR_NONE;
}

uint32_t matrix8_model_do(struct matrix8_chip *chip, const struct matrix8_command *command, struct matrix8_work *work)
{
    work->uses_count = 0;
    switch (command->what) {
    case LOAD:
        return load(chip, command->arguments, work);
    case FILL:
        return fill(chip, command->arguments, work);
    case MULTIPLY:
        return multiply(chip, command->arguments, &command->window, work);
    case STORE:
        return store(chip, command->arguments, &command->output, work);
    default:
        return MATRIX8_ERROR_COMMAND;
    }
}
