/* Commands as words: which engine they are for, their fields, and whether everything they touch is there. */
#include "npu_device.h"

#define TOKENS (NPU_WAIT_PREVIOUS | NPU_WAIT_NEXT | NPU_PUSH_PREVIOUS | NPU_PUSH_NEXT)
#define ALL 0xFFFFFFFFu
#define LOW 0xFFFFu

struct shape {
    uint32_t words;
    enum npu_engine engine;
    uint32_t flags;
    uint32_t used[NPU_LONGEST]; /* bits that mean something, from word 1 on */
};

#define WINDOW(third) 0, ALL, ALL, third, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL

static const struct shape shapes[] = {
    {0, NPU_ENGINE_COMPUTE, 0, {0}},
    {10, NPU_ENGINE_LOAD, NPU_UNPACK > 0 ? NPU_CODED : 0u, {0, LOW, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL}},
    {10, NPU_ENGINE_STORE, 0, {0, LOW, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL}},
    {21,
     NPU_ENGINE_COMPUTE,
     NPU_CONTINUE | NPU_KEEP | NPU_RESIDUAL | NPU_FLOAT32 | NPU_ONCE | NPU_SHARED,
     {WINDOW(ALL), ALL, ALL, ALL, ALL, ALL, ALL, ALL, 0xFFFFFFu, ALL}},
    {21,
     NPU_ENGINE_COMPUTE,
     NPU_RESIDUAL | NPU_FLOAT32 | NPU_ONCE,
     {WINDOW(ALL), ALL, ALL, 0, 0, ALL, ALL, ALL, LOW, ALL}},
    {13, NPU_ENGINE_COMPUTE, NPU_AVERAGE, {WINDOW(LOW), 0xFFFF0000u}},
    {10, NPU_ENGINE_COMPUTE, NPU_ONCE, {0, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL, ALL}},
    {1, NPU_ENGINE_COMPUTE, 0, {0}},
    {8, NPU_ENGINE_COMPUTE, 0, {0, ALL, ALL, ALL, ALL, ALL, ALL, ALL}},
    {5, NPU_ENGINE_COMPUTE, NPU_TURNED, {0, ALL, ALL, ALL, ALL}},
};

static const struct shape *shape_of(uint32_t first)
{
    const uint32_t opcode = first & 0xFFu;
    return &shapes[opcode < sizeof shapes / sizeof shapes[0] ? opcode : 0];
}

uint32_t NPU_SYMBOL(words_of)(uint32_t first)
{
    return shape_of(first)->words;
}

enum npu_engine NPU_SYMBOL(engine_of)(uint32_t first)
{
    return shape_of(first)->engine;
}

static int32_t half(uint32_t value)
{
    return value < 0x8000u ? (int32_t)value : (int32_t)value - 0x10000;
}

static int32_t octet(uint32_t word, uint32_t number)
{
    const int32_t value = (int32_t)npu_octet(word, number);
    return value < 128 ? value : value - 256;
}

struct npu_transfer NPU_SYMBOL(transfer_of)(const struct npu_command *command)
{
    const uint32_t *const w = command->words;
    const struct npu_transfer transfer = {
        npu_octet(w[1], 0), npu_octet(w[1], 1), w[2],           w[3], w[4], npu_low(w[5]), npu_high(w[5]),
        {w[6], w[7]},       {w[8], w[9]},
    };
    return transfer;
}

struct npu_window NPU_SYMBOL(window_of)(const struct npu_command *command)
{
    const uint32_t *const w = command->words;
    struct npu_window window;
    window.input = w[1];
    window.input_row = w[2];
    window.input_pixel = npu_low(w[3]);
    window.run = npu_high(w[3]);
    window.input_rows = npu_low(w[4]);
    window.input_columns = npu_high(w[4]);
    window.kernel_rows = npu_low(w[5]);
    window.kernel_columns = npu_high(w[5]);
    window.stride_y = npu_octet(w[6], 0);
    window.stride_x = npu_octet(w[6], 1);
    window.dilation_y = npu_octet(w[6], 2);
    window.dilation_x = npu_octet(w[6], 3);
    window.first_row = half(npu_low(w[7]));
    window.first_column = half(npu_high(w[7]));
    window.output = w[8];
    window.output_row = w[9];
    window.output_pixel = npu_low(w[10]);
    window.channels = npu_high(w[10]);
    window.rows = npu_low(w[11]);
    window.columns = npu_high(w[11]);
    return window;
}

struct npu_finish NPU_SYMBOL(finish_of)(const struct npu_command *command)
{
    const uint32_t *const w = command->words;
    const struct npu_finish finish = {w[12],          w[13],          octet(w[16], 0), octet(w[16], 1),
                                      octet(w[16], 2), octet(w[16], 3), w[17],           w[18],
                                      npu_low(w[19]),  w[20],           (w[0] & NPU_RESIDUAL) != 0,
                                      (w[0] & NPU_FLOAT32) != 0,
                                      (w[0] & NPU_ONCE) != 0};
    return finish;
}

struct npu_pack NPU_SYMBOL(pack_of)(const struct npu_command *command)
{
    const uint32_t *const w = command->words;
    const struct npu_pack pack = {w[1], w[2], npu_low(w[3]), npu_high(w[3]), w[4], (w[0] & NPU_TURNED) != 0};
    return pack;
}

/* Bytes from the first to the last of `outer` rows of `inner` pixels of `run` bytes. */
static uint64_t extent(uint32_t outer, uint64_t row, uint32_t inner, uint64_t pixel, uint64_t run)
{
    return (outer - 1u) * row + (inner - 1u) * pixel + run;
}

static bool is_inside(uint64_t address, uint64_t bytes, uint64_t limit)
{
    return address <= limit && bytes <= limit - address;
}

/* Weights are read by columns of the array, so that they begin at a multiple of one. */
static bool is_in_weights(uint32_t address, uint64_t bytes)
{
    return address % NPU_ROWS == 0 && is_inside(address, bytes, NPU_WEIGHT_BYTES);
}

/* Whether rows and pixels lie one behind the other, and do not share bytes. */
static bool is_apart(uint32_t outer, uint64_t row, uint32_t inner, uint64_t pixel, uint64_t run)
{
    return (inner == 1 || pixel >= run) && (outer == 1 || row >= extent(1, 0, inner, pixel, run));
}

static enum npu_error check_transfer(const struct npu_command *command, const struct npu_outside *outside)
{
    const struct npu_transfer t = NPU_SYMBOL(transfer_of)(command);
    const bool stores = (command->words[0] & 0xFFu) == NPU_STORE;
    const uint32_t limits[] = {NPU_ACTIVATION_BYTES, NPU_WEIGHT_BYTES};
    const bool coded = !stores && (command->words[0] & NPU_CODED) != 0;
    if (coded && (t.runs != 1 || t.planes != 1 || t.pitches[0] == 0)) {
        return NPU_SHAPE;
    }
    if (t.run == 0 || t.runs == 0 || t.planes == 0 || !is_apart(t.planes, t.pitches[1], t.runs, t.pitches[0], t.run)) {
        return NPU_SHAPE;
    }
    if (t.place >= NPU_PLACES || t.memory > (stores ? 0u : 1u)) {
        return NPU_RANGE;
    }
    const uint64_t there = extent(t.planes, t.strides[1], t.runs, t.strides[0], t.run);
    const uint64_t here = coded ? t.pitches[0] : extent(t.planes, t.pitches[1], t.runs, t.pitches[0], t.run);
    const bool inside = is_inside(t.offset, there, outside->places[t.place].limit) &&
                        is_inside(t.address, here, limits[t.memory]);
    return inside ? NPU_OK : NPU_RANGE;
}

/* `read`: channels of the input that are read. */
static enum npu_error check_window(const struct npu_window *w, uint32_t read, bool writes)
{
    const uint32_t counts[] = {w->input_rows, w->input_columns, w->kernel_rows, w->kernel_columns, w->stride_y,
                               w->stride_x,   w->dilation_y,    w->dilation_x,  w->channels,       w->rows,
                               w->columns,    read};
    for (uint32_t i = 0; i < sizeof counts / sizeof counts[0]; ++i) {
        if (counts[i] == 0) {
            return NPU_SHAPE;
        }
    }
    if ((uint64_t)w->kernel_rows * w->kernel_columns > NPU_MOST_TAPS ||
        !is_apart(w->input_rows, w->input_row, w->input_columns, w->input_pixel, read) ||
        (writes && !is_apart(w->rows, w->output_row, w->columns, w->output_pixel, w->channels))) {
        return NPU_SHAPE;
    }
    const uint64_t in = extent(w->input_rows, w->input_row, w->input_columns, w->input_pixel, read);
    const uint64_t out = extent(w->rows, w->output_row, w->columns, w->output_pixel, w->channels);
    const bool inside = is_inside(w->input, in, NPU_ACTIVATION_BYTES) &&
                        (!writes || is_inside(w->output, out, NPU_ACTIVATION_BYTES));
    return inside ? NPU_OK : NPU_RANGE;
}

/* What the output stage reads. */
static enum npu_error check_output(const struct npu_window *w, const struct npu_finish *f)
{
    const uint64_t parameters = (uint64_t)NPU_SYMBOL(blocks)(w->channels) * NPU_CHANNEL_WORDS * NPU_COLUMNS * 4u;
    const uint64_t residual = extent(w->rows, f->residual_row, w->columns, f->residual_pixel, w->channels);
    const bool inside = is_in_weights(f->parameters, parameters) &&
                        (!f->adds || (is_inside(f->residual, residual, NPU_ACTIVATION_BYTES) &&
                                      is_in_weights(f->addition, 4u * NPU_ADDITION_WORDS)));
    return inside ? NPU_OK : NPU_RANGE;
}

static enum npu_error check_convolve(const struct npu_command *command)
{
    const uint32_t *const words = command->words;
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const struct npu_finish f = NPU_SYMBOL(finish_of)(command);
    const uint32_t first = npu_low(words[15]), steps = npu_high(words[15]), blocks = NPU_SYMBOL(blocks)(w.channels);
    const bool keeps = (words[0] & NPU_KEEP) != 0, sums = keeps || (words[0] & NPU_CONTINUE) != 0;
    const bool shared = (words[0] & NPU_SHARED) != 0;
    const enum npu_error error = check_window(&w, w.run, !keeps);
    if (error != NPU_OK) {
        return error;
    }
    const uint64_t depth = (uint64_t)w.kernel_rows * w.kernel_columns * w.run;
    if (steps == 0 || (uint64_t)first + steps > (depth + NPU_ROWS - 1u) / NPU_ROWS || (sums && words[14] % 4u != 0)) {
        return NPU_SHAPE;
    }
    const uint32_t unused = words[8] | words[9] | npu_low(words[10]) | words[13] | words[16] >> 8;
    if ((keeps && (unused != 0 || f.adds || f.single)) || (!sums && words[14] != 0) || (shared && (keeps || !sums))) {
        return NPU_COMMAND;
    }
    const uint64_t kept = (shared ? 1u : (uint64_t)w.rows * w.columns) * blocks * NPU_COLUMNS * 4u;
    if (!is_in_weights(f.weights, (uint64_t)blocks * steps * NPU_TILE) ||
        (sums && (words[14] % (NPU_COLUMNS * 4u) != 0 || !is_inside(words[14], kept, NPU_SUM_BYTES)))) {
        return NPU_RANGE;
    }
    return keeps ? NPU_OK : check_output(&w, &f);
}

static enum npu_error check_depthwise(const struct npu_command *command)
{
    const struct npu_window w = NPU_SYMBOL(window_of)(command);
    const struct npu_finish f = NPU_SYMBOL(finish_of)(command);
    if (w.run == 0 || w.channels == 0) {
        return NPU_SHAPE;
    }
    const enum npu_error error = check_window(&w, (w.channels - 1u) / w.run + 1u, true);
    if (error != NPU_OK) {
        return error;
    }
    const uint64_t taps = (uint64_t)w.kernel_rows * w.kernel_columns;
    if (!is_in_weights(f.weights, NPU_SYMBOL(blocks)(w.channels) * taps * NPU_COLUMNS)) {
        return NPU_RANGE;
    }
    return check_output(&w, &f);
}

/* Rows of bytes: `tensors` of them, the last is the output, then their size, how many, and `bytes` of weights. */
static enum npu_error check_elements(const struct npu_command *command, uint32_t tensors, uint32_t bytes)
{
    const uint32_t *const w = command->words + 1;
    const uint32_t run = w[2 * tensors], rows = w[2 * tensors + 1], constants = w[2 * tensors + 2];
    if (run == 0 || rows == 0 || (rows > 1 && w[2 * tensors - 1] < run)) {
        return NPU_SHAPE;
    }
    for (uint32_t i = 0; i < 2 * tensors; i += 2) {
        if (!is_inside(w[i], extent(rows, w[i + 1], 1, 0, run), NPU_ACTIVATION_BYTES)) {
            return NPU_RANGE;
        }
    }
    return is_in_weights(constants, bytes) ? NPU_OK : NPU_RANGE;
}

static enum npu_error check_pack(const struct npu_command *command)
{
    const struct npu_pack p = NPU_SYMBOL(pack_of)(command);
    if (p.depth == 0 || p.channels == 0) {
        return NPU_SHAPE;
    }
    const uint32_t rows = p.turned ? p.depth : p.channels, run = p.turned ? p.channels : p.depth;
    const uint64_t tiles = (uint64_t)NPU_SYMBOL(blocks)(p.channels) * ((p.depth + NPU_ROWS - 1u) / NPU_ROWS);
    const bool inside = is_inside(p.source, extent(rows, p.row, 1, 0, run), NPU_ACTIVATION_BYTES) &&
                        is_in_weights(p.weights, tiles * NPU_TILE);
    return inside ? NPU_OK : NPU_RANGE;
}

static bool has_only_meaning(const struct npu_command *command)
{
    const uint32_t *const w = command->words;
    const struct shape *const shape = shape_of(w[0]);
    uint32_t more = w[0] & ~(0xFFu | TOKENS | shape->flags);
    for (uint32_t i = 1; i < shape->words; ++i) {
        more |= w[i] & ~shape->used[i];
    }
    const uint32_t opcode = w[0] & 0xFFu;
    if ((opcode == NPU_CONVOLVE || opcode == NPU_DEPTHWISE) && (w[0] & NPU_RESIDUAL) == 0) {
        more |= w[17] | w[18] | npu_low(w[19]) | w[20] | (w[0] & NPU_ONCE);
    }
    return more == 0;
}

enum npu_error NPU_SYMBOL(check)(const struct npu_command *command, const struct npu_outside *outside)
{
    const uint32_t first = command->words[0];
    const enum npu_engine engine = NPU_SYMBOL(engine_of)(first);
    if (!has_only_meaning(command)) {
        return NPU_COMMAND;
    }
    if ((engine == NPU_ENGINE_LOAD && (first & (NPU_WAIT_PREVIOUS | NPU_PUSH_PREVIOUS)) != 0) ||
        (engine == NPU_ENGINE_STORE && (first & (NPU_WAIT_NEXT | NPU_PUSH_NEXT)) != 0)) {
        return NPU_TOKEN;
    }
    switch (first & 0xFFu) {
    case NPU_LOAD:
    case NPU_STORE:
        return check_transfer(command, outside);
    case NPU_CONVOLVE:
        return check_convolve(command);
    case NPU_DEPTHWISE:
        return check_depthwise(command);
    case NPU_POOL: {
        const struct npu_window window = NPU_SYMBOL(window_of)(command);
        return check_window(&window, window.channels, true);
    }
    case NPU_ADD:
        return check_elements(command, 3, 4u * NPU_ADDITION_WORDS);
    case NPU_LOOKUP:
        return check_elements(command, 2, NPU_TABLE_BYTES);
    case NPU_PACK:
        return check_pack(command);
    default:
        return NPU_OK;
    }
}
