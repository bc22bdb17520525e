/* Pooling: the mean or the largest of a window's elements; what lies outside of the input takes no part. */
#include "npu_device.h"

/* Of an axis: the taps that hit the input. */
struct taps {
    int64_t first; /* where tap 0 would be */
    uint32_t begin, end;
};

static struct taps taps_of(int64_t first, uint32_t kernel, uint32_t dilation, uint32_t extent)
{
    struct taps taps = {first, 0, kernel};
    while (taps.begin < taps.end && first + (int64_t)taps.begin * dilation < 0) {
        taps.begin++;
    }
    while (taps.end > taps.begin && first + (int64_t)(taps.end - 1u) * dilation >= extent) {
        taps.end--;
    }
    return taps;
}

/* Halves away from zero. */
static int32_t mean_of(int64_t sum, uint32_t count)
{
    const int64_t half = count / 2u;
    return (int32_t)((sum > 0 ? sum + half : sum - half) / (int64_t)count);
}

static int32_t pooled(const struct npu_memories *memories, const struct npu_window *w, const struct taps *ys,
                      const struct taps *xs, uint32_t channel, bool average)
{
    int64_t sum = 0;
    int32_t largest = INT8_MIN;
    for (uint32_t i = ys->begin; i < ys->end; ++i) {
        for (uint32_t j = xs->begin; j < xs->end; ++j) {
            const uint32_t y = (uint32_t)(ys->first + (int64_t)i * w->dilation_y);
            const uint32_t x = (uint32_t)(xs->first + (int64_t)j * w->dilation_x);
            const int32_t value =
                (int8_t)memories->activations[w->input + y * w->input_row + x * w->input_pixel + channel];
            sum += value;
            largest = value > largest ? value : largest;
        }
    }
    return average ? mean_of(sum, (ys->end - ys->begin) * (xs->end - xs->begin)) : largest;
}

enum npu_error NPU_SYMBOL(pool)(struct npu_memories *memories, const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const bool average = (command->words[0] & NPU_AVERAGE) != 0;
    const int32_t least = (int8_t)npu_octet(command->words[12], 2), greatest = (int8_t)npu_octet(command->words[12], 3);
    for (uint32_t row = 0; row < w.rows; ++row) {
        const struct taps ys =
            taps_of(w.first_row + (int64_t)row * w.stride_y, w.kernel_rows, w.dilation_y, w.input_rows);
        for (uint32_t column = 0; column < w.columns; ++column) {
            const struct taps xs = taps_of(w.first_column + (int64_t)column * w.stride_x, w.kernel_columns,
                                           w.dilation_x, w.input_columns);
            if (ys.begin == ys.end || xs.begin == xs.end) {
                return NPU_SHAPE;
            }
            for (uint32_t channel = 0; channel < w.channels; ++channel) {
                const int32_t value = pooled(memories, &w, &ys, &xs, channel, average);
                const int32_t clamped = value < least ? least : value > greatest ? greatest : value;
                memories->activations[w.output + row * w.output_row + column * w.output_pixel + channel] =
                    (uint8_t)clamped;
            }
        }
    }
    return NPU_OK;
}
