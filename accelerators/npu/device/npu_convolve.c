/* Convolutions: windows as one dense sequence of bytes, NPU_ROWS of them times NPU_COLUMNS filters a cycle. */
#include <stddef.h>

#include "npu_device.h"

/* What the array reads of one window: the bytes of some steps, zeros beyond the last tap. */
static uint8_t fed[NPU_WEIGHT_BYTES + NPU_ROWS];

struct part {
    uint64_t begin; /* of the window's bytes */
    uint32_t bytes;
};

static const uint8_t *tap_at(const struct npu_memories *memories, const struct npu_window *w, int64_t row,
                             int64_t column)
{
    if (row < 0 || row >= w->input_rows || column < 0 || column >= w->input_columns) {
        return NULL;
    }
    return memories->activations + w->input + (uint32_t)row * w->input_row + (uint32_t)column * w->input_pixel;
}

static void feed(const struct npu_memories *memories, const struct npu_window *w, uint32_t row, uint32_t column,
                 const struct part *part, int32_t zero_point)
{
    const uint64_t depth = (uint64_t)w->kernel_rows * w->kernel_columns * w->run;
    uint32_t done = 0;
    while (done < part->bytes && part->begin + done < depth) {
        const uint64_t at = part->begin + done;
        const uint32_t tap = (uint32_t)(at / w->run), channel = (uint32_t)(at % w->run);
        const int64_t y =
            w->first_row + (int64_t)row * w->stride_y + (int64_t)(tap / w->kernel_columns) * w->dilation_y;
        const int64_t x =
            w->first_column + (int64_t)column * w->stride_x + (int64_t)(tap % w->kernel_columns) * w->dilation_x;
        const uint8_t *const from = tap_at(memories, w, y, x);
        const uint32_t rest = part->bytes - done;
        const uint32_t bytes = w->run - channel < rest ? w->run - channel : rest;
        for (uint32_t i = 0; i < bytes; ++i) {
            fed[done + i] = from != NULL ? from[channel + i] : (uint8_t)zero_point;
        }
        done += bytes;
    }
    for (; done < part->bytes; ++done) {
        fed[done] = 0;
    }
}

/* Of one channel: its column in one tile after the other. */
static uint32_t sum_of(const uint8_t *weights, uint32_t steps, int32_t zero_point)
{
    uint32_t sum = 0;
    for (uint32_t step = 0; step < steps; ++step) {
        const int8_t *const w = (const int8_t *)weights + step * NPU_TILE;
        const int8_t *const x = (const int8_t *)fed + step * NPU_ROWS;
        int32_t part = 0; /* at most 64 * 2^15 */
        for (uint32_t i = 0; i < NPU_ROWS; ++i) {
            part += (w[i] - zero_point) * x[i];
        }
        sum += (uint32_t)part;
    }
    return sum;
}

enum npu_error NPU_SYMBOL(convolve)(struct npu_memories *memories, const struct npu_command *command)
{
    const uint32_t *const words = command->words;
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const struct npu_finish f = NPU_SYMBOL(finish_of)(command);
    const bool goes_on = (words[0] & NPU_CONTINUE) != 0, keeps = (words[0] & NPU_KEEP) != 0;
    const bool shared = (words[0] & NPU_SHARED) != 0;
    const int32_t weight_zero_point = (int8_t)npu_octet(words[19], 2);
    const uint32_t steps = npu_high(words[15]), blocks = NPU_SYMBOL(blocks)(w.channels);
    const struct part part = {(uint64_t)npu_low(words[15]) * NPU_ROWS, steps * NPU_ROWS};
    struct npu_addition addition = {0};
    const enum npu_error error = keeps ? NPU_OK : NPU_SYMBOL(check_finish)(memories, &w, &f, &addition);
    if (error != NPU_OK) {
        return error;
    }
    for (uint32_t pixel = 0; pixel < w.rows * w.columns; ++pixel) {
        const uint32_t row = pixel / w.columns, column = pixel % w.columns;
        feed(memories, &w, row, column, &part, f.input_zero_point);
        for (uint32_t channel = 0; channel < w.channels; ++channel) {
            const uint32_t block = channel / NPU_COLUMNS, lane = channel % NPU_COLUMNS;
            const uint8_t *const weights = memories->weights + f.weights + block * steps * NPU_TILE + lane * NPU_ROWS;
            const uint32_t place = shared ? block : pixel * blocks + block;
            const uint32_t at = words[14] / 4u + place * NPU_COLUMNS + lane; /* of its sum */
            const uint32_t more = goes_on ? memories->sums[at] : 0u;
            const uint32_t total = sum_of(weights, steps, weight_zero_point) + more;
            if (keeps) {
                memories->sums[at] = total;
            } else {
                NPU_SYMBOL(finish)(memories, &w, &f, &addition, row, column, channel, total);
            }
        }
    }
    return NPU_OK;
}
