/* Average and maximum over windows, NHWC. What lies outside of the input takes no part. */
#include "conveyor_device.h"

enum { INPUT, OUTPUT, TENSORS };
enum { CLAMP_MIN = CONVEYOR_WINDOW_FIELDS, CLAMP_MAX, FIELDS };
enum { LANES = 16 };

/* The part of an axis that a window covers: first to last - 1. */
struct span {
    int32_t first, last;
};

struct pooling {
    struct conveyor_window w;
    int32_t clamp_min, clamp_max;
    bool average;
    struct conveyor_tensor input, output;
};

static int32_t smaller(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static struct span span_of(int32_t start, int32_t size, int32_t extent)
{
    const struct span span = {start < 0 ? 0 : start, smaller(start + size, extent)};
    return span;
}

/* No window may lie in the padding alone: it would have no largest element, and no mean. */
static bool covers_input(int32_t count, int32_t stride, int32_t pad, int32_t size, int32_t extent)
{
    return pad < size && (count - 1) * stride - pad < extent;
}

static enum conveyor_error decode(const struct conveyor *c, struct pooling *p)
{
    struct conveyor_window *const w = &p->w;
    enum conveyor_error error = conveyor_window(c, w);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    const uint64_t rows = (uint64_t)smaller(w->kernel_height, w->in_height);
    p->clamp_min = conveyor_field(c, CLAMP_MIN);
    p->clamp_max = conveyor_field(c, CLAMP_MAX);
    if (w->in_channels != w->out_channels ||
        rows * (uint64_t)w->in_width * (uint64_t)w->in_channels > CONVEYOR_ROW_BYTES ||
        !covers_input(w->out_height, w->stride_height, w->pad_top, w->kernel_height, w->in_height) ||
        !covers_input(w->out_width, w->stride_width, w->pad_left, w->kernel_width, w->in_width)) {
        return CONVEYOR_BAD_SHAPE;
    }
    if (!conveyor_rest_is_zero(c, TENSORS, FIELDS)) {
        return CONVEYOR_BAD_OPERATION;
    }
    if (!conveyor_is_range(p->clamp_min, p->clamp_max)) {
        return CONVEYOR_BAD_QUANTISATION;
    }
    error = conveyor_find(c, INPUT, w->in_bytes, false, &p->input);
    return error != CONVEYOR_GOOD ? error : conveyor_find(c, OUTPUT, w->out_bytes, true, &p->output);
}

static enum conveyor_error load_rows(struct conveyor *c, const struct pooling *p, int32_t n, struct span rows)
{
    const uint64_t row_bytes = (uint64_t)p->w.in_width * (uint64_t)p->w.in_channels;
    const uint64_t first = (uint64_t)n * (uint64_t)p->w.in_height + (uint64_t)rows.first;
    const uint32_t bytes = (uint32_t)((uint64_t)(rows.last - rows.first) * row_bytes);
    return conveyor_load(c, p->input, first * row_bytes, c->rows, bytes);
}

/* sum / count, halves away from zero. */
static int32_t mean(int32_t sum, int32_t count)
{
    return (sum > 0 ? sum + count / 2 : sum - count / 2) / count;
}

/* One channel; `rows` many rows are on chip. */
static int32_t pooled(const struct conveyor *c, const struct pooling *p, int32_t rows, struct span columns, int32_t channel)
{
    int32_t sum = 0;
    int32_t largest = INT8_MIN;
    for (int32_t y = 0; y < rows; ++y) {
        for (int32_t x = columns.first; x < columns.last; ++x) {
            const int32_t value = c->rows[(y * p->w.in_width + x) * p->w.in_channels + channel];
            sum += value;
            largest = value > largest ? value : largest;
        }
    }
    return p->average ? mean(sum, rows * (columns.last - columns.first)) : largest;
}

static enum conveyor_error run_row(struct conveyor *c, const struct pooling *p, int32_t n, int32_t y)
{
    const struct conveyor_window *const w = &p->w;
    const struct span rows = span_of(y * w->stride_height - w->pad_top, w->kernel_height, w->in_height);
    enum conveyor_error error = load_rows(c, p, n, rows);
    for (int32_t x = 0; x < w->out_width && error == CONVEYOR_GOOD; ++x) {
        const struct span columns = span_of(x * w->stride_width - w->pad_left, w->kernel_width, w->in_width);
        for (int32_t channel = 0; channel < w->out_channels; ++channel) {
            const int32_t value = pooled(c, p, rows.last - rows.first, columns, channel);
            c->filters[channel] = conveyor_clamped(value, p->clamp_min, p->clamp_max);
        }
        const uint64_t line = (uint64_t)n * (uint64_t)w->out_height + (uint64_t)y;
        const uint64_t at = (line * (uint64_t)w->out_width + (uint64_t)x) * (uint64_t)w->out_channels;
        error = conveyor_store(c, p->output, at, c->filters, (uint32_t)w->out_channels);
    }
    return error;
}

enum conveyor_error conveyor_pool(struct conveyor *c, bool average)
{
    struct pooling p;
    enum conveyor_error error = decode(c, &p);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    p.average = average;
    for (int32_t n = 0; n < p.w.batch && error == CONVEYOR_GOOD; ++n) {
        for (int32_t y = 0; y < p.w.out_height && error == CONVEYOR_GOOD; ++y) {
            error = run_row(c, &p, n, y);
        }
    }
    conveyor_count(c, p.w.out_bytes * (uint64_t)p.w.kernel_height * (uint64_t)p.w.kernel_width, LANES,
                   p.w.in_bytes + p.w.out_bytes);
    return error;
}
