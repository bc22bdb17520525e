/* Convolution, NHWC, filters OHWI: so many output channels at a time as have room in the filter memory, row by row. The
 * rows of the input that a row of the output needs lie on chip, padded with the zero point. */
#include "conveyor_device.h"

#include <string.h>

enum { INPUT, CHANNELS, FILTERS, OUTPUT, TENSORS };
enum {
    DILATION_HEIGHT = CONVEYOR_WINDOW_FIELDS,
    DILATION_WIDTH,
    GROUPS,
    INPUT_ZERO_POINT,
    OUTPUT_ZERO_POINT,
    CLAMP_MIN,
    CLAMP_MAX,
    FIELDS
};
enum { CHANNEL_BYTES = 12, MULTIPLIERS = 64, LANES = 16 };

struct convolution {
    struct conveyor_window w;
    int32_t dilation_height, dilation_width, groups;
    int32_t input_zero_point, output_zero_point, clamp_min, clamp_max;
    int32_t depth;        /* input channels of a group */
    int32_t columns;      /* of the padded rows */
    uint64_t filter;      /* bytes of one */
    uint64_t row_bytes;   /* of one padded row */
    struct conveyor_tensor tensors[TENSORS];
};

/* Output channels that are computed together. */
struct tile {
    int32_t first, count;
};

static enum conveyor_error check_shape(struct convolution *v)
{
    struct conveyor_window *const w = &v->w;
    if (!conveyor_is_window_number(v->dilation_height, 1) || !conveyor_is_window_number(v->dilation_width, 1) ||
        v->groups < 1 || w->in_channels % v->groups != 0 || w->out_channels % v->groups != 0) {
        return CONVEYOR_BAD_SHAPE;
    }
    v->depth = w->in_channels / v->groups;
    v->columns = (w->out_width - 1) * w->stride_width + (w->kernel_width - 1) * v->dilation_width + 1;
    v->row_bytes = (uint64_t)v->columns * (uint64_t)w->in_channels;
    v->filter = (uint64_t)w->kernel_height * (uint64_t)w->kernel_width * (uint64_t)v->depth;
    const bool fits =
        v->row_bytes * (uint64_t)w->kernel_height <= CONVEYOR_ROW_BYTES && v->filter <= CONVEYOR_FILTER_BYTES;
    return fits ? CONVEYOR_GOOD : CONVEYOR_BAD_SHAPE;
}

static enum conveyor_error check_tensors(const struct conveyor *c, struct convolution *v)
{
    const uint64_t channels = (uint64_t)v->w.out_channels;
    const uint64_t bytes[TENSORS] = {v->w.in_bytes, channels * CHANNEL_BYTES, channels * v->filter, v->w.out_bytes};
    for (uint32_t i = 0; i < TENSORS; ++i) {
        const enum conveyor_error error = conveyor_find(c, i, bytes[i], i == OUTPUT, &v->tensors[i]);
        if (error != CONVEYOR_GOOD) {
            return error;
        }
    }
    return CONVEYOR_GOOD;
}

static enum conveyor_error decode(const struct conveyor *c, struct convolution *v)
{
    enum conveyor_error error = conveyor_window(c, &v->w);
    v->dilation_height = conveyor_field(c, DILATION_HEIGHT);
    v->dilation_width = conveyor_field(c, DILATION_WIDTH);
    v->groups = conveyor_field(c, GROUPS);
    v->input_zero_point = conveyor_field(c, INPUT_ZERO_POINT);
    v->output_zero_point = conveyor_field(c, OUTPUT_ZERO_POINT);
    v->clamp_min = conveyor_field(c, CLAMP_MIN);
    v->clamp_max = conveyor_field(c, CLAMP_MAX);
    error = error != CONVEYOR_GOOD ? error : check_shape(v);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    if (!conveyor_rest_is_zero(c, TENSORS, FIELDS)) {
        return CONVEYOR_BAD_OPERATION;
    }
    if (!conveyor_is_int8(v->input_zero_point) || !conveyor_is_int8(v->output_zero_point) ||
        !conveyor_is_range(v->clamp_min, v->clamp_max)) {
        return CONVEYOR_BAD_QUANTISATION;
    }
    return check_tensors(c, v);
}

static enum conveyor_error load_channel(struct conveyor *c, const struct convolution *v, struct tile tile, int32_t i)
{
    uint8_t bytes[CHANNEL_BYTES];
    struct conveyor_channel *const channel = &c->channels[i];
    const uint64_t offset = (uint64_t)(tile.first + i) * CHANNEL_BYTES;
    const enum conveyor_error error = conveyor_load(c, v->tensors[CHANNELS], offset, bytes, sizeof bytes);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    channel->bias = conveyor_wrapped(conveyor_word(bytes));
    channel->multiplier = conveyor_wrapped(conveyor_word(bytes + 4));
    channel->shift = conveyor_wrapped(conveyor_word(bytes + 8));
    return conveyor_is_scale(channel->multiplier, channel->shift) ? CONVEYOR_GOOD : CONVEYOR_BAD_QUANTISATION;
}

static enum conveyor_error load_tile(struct conveyor *c, const struct convolution *v, struct tile tile)
{
    for (int32_t i = 0; i < tile.count; ++i) {
        const enum conveyor_error error = load_channel(c, v, tile, i);
        if (error != CONVEYOR_GOOD) {
            return error;
        }
    }
    const uint32_t bytes = (uint32_t)((uint64_t)tile.count * v->filter);
    return conveyor_load(c, v->tensors[FILTERS], (uint64_t)tile.first * v->filter, c->filters, bytes);
}

/* One row of the input between its padding, or padding alone. */
static enum conveyor_error load_row(struct conveyor *c, const struct convolution *v, int32_t n, int32_t y, int8_t *row)
{
    const struct conveyor_window *const w = &v->w;
    memset(row, v->input_zero_point, (size_t)v->row_bytes);
    const int32_t room = v->columns - w->pad_left;
    const int32_t columns = room < w->in_width ? room : w->in_width;
    if (y < 0 || y >= w->in_height || columns <= 0) {
        return CONVEYOR_GOOD;
    }
    const uint64_t line = (uint64_t)n * (uint64_t)w->in_height + (uint64_t)y;
    const uint64_t offset = line * (uint64_t)w->in_width * (uint64_t)w->in_channels;
    return conveyor_load(c, v->tensors[INPUT], offset, row + (size_t)w->pad_left * (size_t)w->in_channels,
                         (uint32_t)columns * (uint32_t)w->in_channels);
}

static enum conveyor_error load_rows(struct conveyor *c, const struct convolution *v, int32_t n, int32_t y)
{
    for (int32_t ky = 0; ky < v->w.kernel_height; ++ky) {
        const int32_t from = y * v->w.stride_height + ky * v->dilation_height - v->w.pad_top;
        const enum conveyor_error error = load_row(c, v, n, from, c->rows + (size_t)ky * (size_t)v->row_bytes);
        if (error != CONVEYOR_GOOD) {
            return error;
        }
    }
    return CONVEYOR_GOOD;
}

/* The sum under the window of column x, modulo 2^32. */
static uint32_t sum_of(const struct conveyor *c, const struct convolution *v, int32_t x, int32_t channel,
                       const int8_t *filter)
{
    const int32_t group = channel / (v->w.out_channels / v->groups);
    const size_t step = (size_t)v->dilation_width * (size_t)v->w.in_channels;
    const int8_t *row = c->rows + (size_t)x * (size_t)v->w.stride_width * (size_t)v->w.in_channels;
    uint32_t sum = 0;
    row += (size_t)group * (size_t)v->depth;
    for (int32_t ky = 0; ky < v->w.kernel_height; ++ky) {
        for (int32_t kx = 0; kx < v->w.kernel_width; ++kx) {
            const int8_t *const pixel = row + (size_t)kx * step;
            for (int32_t i = 0; i < v->depth; ++i) {
                sum += (uint32_t)(pixel[i] * filter[i]);
            }
            filter += v->depth;
        }
        row += v->row_bytes;
    }
    return sum;
}

static enum conveyor_error compute_row(struct conveyor *c, const struct convolution *v, struct tile tile, uint64_t line)
{
    int8_t pixel[CONVEYOR_CHANNELS];
    for (int32_t x = 0; x < v->w.out_width; ++x) {
        for (int32_t i = 0; i < tile.count; ++i) {
            const struct conveyor_channel *const channel = &c->channels[i];
            const uint32_t sum = sum_of(c, v, x, tile.first + i, c->filters + (size_t)i * (size_t)v->filter);
            const int32_t total = conveyor_wrapped(sum + (uint32_t)channel->bias);
            const int64_t scaled = conveyor_scaled(total, channel->multiplier, channel->shift);
            pixel[i] = conveyor_clamped(scaled + v->output_zero_point, v->clamp_min, v->clamp_max);
        }
        const uint64_t at = (line * (uint64_t)v->w.out_width + (uint64_t)x) * (uint64_t)v->w.out_channels;
        const enum conveyor_error error =
            conveyor_store(c, v->tensors[OUTPUT], at + (uint64_t)tile.first, pixel, (uint32_t)tile.count);
        if (error != CONVEYOR_GOOD) {
            return error;
        }
    }
    return CONVEYOR_GOOD;
}

static enum conveyor_error run_tile(struct conveyor *c, const struct convolution *v, struct tile tile)
{
    enum conveyor_error error = load_tile(c, v, tile);
    for (int32_t n = 0; n < v->w.batch && error == CONVEYOR_GOOD; ++n) {
        for (int32_t y = 0; y < v->w.out_height && error == CONVEYOR_GOOD; ++y) {
            error = load_rows(c, v, n, y);
            if (error == CONVEYOR_GOOD) {
                error = compute_row(c, v, tile, (uint64_t)n * (uint64_t)v->w.out_height + (uint64_t)y);
            }
        }
    }
    return error;
}

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

enum conveyor_error conveyor_convolve(struct conveyor *c)
{
    struct convolution v;
    enum conveyor_error error = decode(c, &v);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    const int32_t most = smaller(CONVEYOR_CHANNELS, (int32_t)(CONVEYOR_FILTER_BYTES / v.filter));
    for (int32_t first = 0; first < v.w.out_channels && error == CONVEYOR_GOOD; first += most) {
        const struct tile tile = {first, smaller(most, v.w.out_channels - first)};
        error = run_tile(c, &v, tile);
    }
    conveyor_count(c, v.w.out_bytes * v.filter, v.groups == 1 ? MULTIPLIERS : LANES,
                   v.w.in_bytes + v.w.out_bytes + (uint64_t)v.w.out_channels * (v.filter + CHANNEL_BYTES));
    return error;
}
