/* Depthwise convolutions: the array's rows multiply taps instead of channels. */
#include "npu_device.h"

static uint32_t sum_of(const struct npu_memories *memories, const struct npu_window *w, const struct npu_finish *f,
                       uint32_t row, uint32_t column, uint32_t channel)
{
    const uint32_t taps = w->kernel_rows * w->kernel_columns;
    const uint32_t weights = f->weights + channel / NPU_COLUMNS * taps * NPU_COLUMNS + channel % NPU_COLUMNS;
    uint32_t sum = 0;
    for (uint32_t tap = 0; tap < taps; ++tap) {
        const int64_t y =
            w->first_row + (int64_t)row * w->stride_y + (int64_t)(tap / w->kernel_columns) * w->dilation_y;
        const int64_t x =
            w->first_column + (int64_t)column * w->stride_x + (int64_t)(tap % w->kernel_columns) * w->dilation_x;
        int32_t value = f->input_zero_point;
        if (y >= 0 && y < w->input_rows && x >= 0 && x < w->input_columns) {
            const uint32_t at = w->input + (uint32_t)y * w->input_row + (uint32_t)x * w->input_pixel;
            value = (int8_t)memories->activations[at + channel / w->run];
        }
        sum += (uint32_t)(value * (int8_t)memories->weights[weights + tap * NPU_COLUMNS]);
    }
    return sum;
}

enum npu_error NPU_SYMBOL(depthwise)(struct npu_memories *memories, const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const struct npu_finish f = NPU_SYMBOL(finish_of)(command);
    struct npu_addition addition = {0};
    const enum npu_error error = NPU_SYMBOL(check_finish)(memories, &w, &f, &addition);
    if (error != NPU_OK) {
        return error;
    }
    for (uint32_t row = 0; row < w.rows; ++row) {
        for (uint32_t column = 0; column < w.columns; ++column) {
            for (uint32_t channel = 0; channel < w.channels; ++channel) {
                const uint32_t sum = sum_of(memories, &w, &f, row, column, channel);
                NPU_SYMBOL(finish)(memories, &w, &f, &addition, row, column, channel, sum);
            }
        }
    }
    return NPU_OK;
}
