/* The output stage: TFLite's rounding or single precision's, to the bit, and defined for every input. */
#include "npu_device.h"

enum { LEAST_SHIFT = -31, MOST_SHIFT = 30, MOST_ONCE = 42 };

/* Of a single-precision number, and how many more a multiplier has, which are the rest of the bias. */
enum { SINGLE_BITS = 24, SPARE_BITS = 7 };

static int32_t as_signed(uint32_t bits)
{
    return bits <= INT32_MAX ? (int32_t)bits : (int32_t)((int64_t)bits - (INT64_C(1) << 32));
}

static int32_t word_at(const struct npu_memories *memories, uint32_t address)
{
    const uint8_t *const at = memories->weights + address;
    return as_signed((uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24);
}

/* round(a * b / 2^31), halves upwards. */
static int32_t high_product(int32_t a, int32_t b)
{
    const int64_t product = (int64_t)a * b + (INT64_C(1) << 30);
    const int64_t down = product < 0 && product % (INT64_C(1) << 31) != 0 ? 1 : 0;
    return (int32_t)(product / (INT64_C(1) << 31) - down);
}

/* round(x / 2^exponent), halves away from zero. */
static int32_t divided_by_power(int32_t x, uint32_t exponent)
{
    const int64_t half = exponent == 0 ? 0 : INT64_C(1) << (exponent - 1u);
    const int64_t magnitude = x < 0 ? -(int64_t)x : x;
    const int64_t rounded = (magnitude + half) >> exponent;
    return (int32_t)(x < 0 ? -rounded : rounded);
}

/* The multiplier is not negative, so no product leaves the range. */
static int32_t scaled(uint32_t value, int32_t multiplier, int32_t shift)
{
    const uint32_t left = shift > 0 ? (uint32_t)shift : 0;
    const uint32_t right = shift > 0 ? 0 : (uint32_t)-shift;
    return divided_by_power(high_product(as_signed(value << left), multiplier), right);
}

/* round(value / 2^exponent), halves to even. */
static uint64_t half_even(uint64_t value, uint32_t exponent)
{
    if (exponent == 0 || exponent > 63) {
        return exponent == 0 ? value : 0;
    }
    const uint64_t whole = value >> exponent, rest = value - (whole << exponent), half = UINT64_C(1) << (exponent - 1u);
    return whole + (rest > half || (rest == half && whole % 2u != 0) ? 1u : 0u);
}

/* How many bits a number has beyond those of a single-precision one. */
static uint32_t excess(uint64_t value)
{
    uint32_t bits = 0;
    while (value >> bits >= UINT64_C(1) << SINGLE_BITS) {
        ++bits;
    }
    return bits;
}

/* The sum and the rest, which a larger one cannot hold, as a single-precision number times such a multiplier, rounded
 * to one, and then half to even. */
static int32_t scaled_in_single(uint32_t value, int32_t multiplier, int32_t shift)
{
    const int64_t whole_sum = as_signed(value), most = INT64_C(1) << SINGLE_BITS;
    const int64_t rest = whole_sum >= -most && whole_sum <= most ? multiplier % (1 << SPARE_BITS) : 0;
    const int64_t sum = whole_sum * (1 << SPARE_BITS) + rest;
    const uint64_t magnitude = (uint64_t)(sum < 0 ? -sum : sum);
    const uint32_t lost = excess(magnitude);
    const uint64_t product = half_even(magnitude, lost) * ((uint32_t)multiplier >> SPARE_BITS);
    const uint32_t cut = excess(product);
    const uint64_t rounded = half_even(product, cut);
    const int32_t exponent = (int32_t)(lost + cut) + shift - 31;
    const uint64_t whole = exponent < 0 ? half_even(rounded, (uint32_t)-exponent) : rounded << exponent;
    const int32_t result = whole > INT32_MAX ? INT32_MAX : (int32_t)whole;
    return sum < 0 ? -result : result;
}

static int32_t clamped(int64_t value, int32_t offset, int32_t least, int32_t greatest)
{
    const int64_t moved = value + offset;
    return moved < least ? least : moved > greatest ? greatest : (int32_t)moved;
}

static bool is_scale(int32_t multiplier, int32_t shift)
{
    return multiplier >= 0 && shift >= LEAST_SHIFT && shift <= MOST_SHIFT;
}

/* One that single precision has, and a rest. */
static bool is_single(int32_t multiplier)
{
    return multiplier >= INT32_C(1) << 30;
}

static bool is_byte(int32_t value)
{
    return value >= INT8_MIN && value <= INT8_MAX;
}

uint32_t NPU_SYMBOL(blocks)(uint32_t channels)
{
    return (channels + NPU_COLUMNS - 1u) / NPU_COLUMNS;
}

enum npu_error NPU_SYMBOL(addition_at)(const struct npu_memories *memories, uint32_t address, bool once,
                                       struct npu_addition *addition)
{
    int32_t words[NPU_ADDITION_WORDS];
    for (uint32_t i = 0; i < NPU_ADDITION_WORDS; ++i) {
        words[i] = word_at(memories, address + 4u * i);
    }
    const struct npu_addition read = {words[0], words[1], words[2], words[3], words[4],  words[5],
                                      words[6], words[7], words[8], words[9], words[10], words[11], once};
    *addition = read;
    const bool scales = is_scale(read.multiplier1, read.shift1) && is_scale(read.multiplier2, read.shift2) &&
                        is_scale(read.output_multiplier, read.output_shift);
    const bool bytes = is_byte(read.zero_point1) && is_byte(read.zero_point2) && is_byte(read.output_zero_point) &&
                       is_byte(read.clamp_min) && is_byte(read.clamp_max);
    const bool shifts = read.left_shift >= 0 && read.left_shift <= MOST_SHIFT;
    const bool whole = read.left_shift >= 1 && read.left_shift <= MOST_ONCE && read.output_multiplier >= 0;
    return bytes && (once ? whole : scales && shifts) ? NPU_OK : NPU_QUANTISATION;
}

enum npu_error NPU_SYMBOL(check_finish)(const struct npu_memories *memories, const struct npu_window *window,
                                        const struct npu_finish *finish, struct npu_addition *addition)
{
    for (uint32_t channel = 0; channel < window->channels; ++channel) {
        const uint32_t block = channel / NPU_COLUMNS;
        const uint32_t at = finish->parameters + 4u * (block * NPU_CHANNEL_WORDS * NPU_COLUMNS + channel % NPU_COLUMNS);
        const int32_t multiplier = word_at(memories, at + 4u * NPU_COLUMNS);
        if (!is_scale(multiplier, word_at(memories, at + 8u * NPU_COLUMNS)) ||
            (finish->single && !is_single(multiplier))) {
            return NPU_QUANTISATION;
        }
    }
    return finish->adds ? NPU_SYMBOL(addition_at)(memories, finish->addition, finish->once, addition) : NPU_OK;
}

/* The real sum of both scaled operands, rounded once: halves to even, and so is what lies as near to one as the
 * tolerance. */
static int64_t added_once(const struct npu_addition *a, int32_t first, int32_t second)
{
    const int64_t unit = INT64_C(1) << a->left_shift, tolerance = a->output_multiplier;
    const int64_t sum = (int64_t)first * a->multiplier1 + (int64_t)second * a->multiplier2 + unit / 2 + tolerance;
    const int64_t rest = (sum % unit + unit) % unit, above = (sum - rest) / unit;
    return rest <= 2 * tolerance && above % 2 != 0 ? above - 1 : above;
}

int8_t NPU_SYMBOL(added)(const struct npu_addition *addition, int8_t first, int8_t second)
{
    const struct npu_addition *const a = addition;
    if (a->once) {
        const int64_t sum = added_once(a, first - a->zero_point1, second - a->zero_point2);
        return (int8_t)clamped(sum, a->output_zero_point, a->clamp_min, a->clamp_max);
    }
    const uint32_t one = (uint32_t)(first - a->zero_point1) << (uint32_t)a->left_shift;
    const uint32_t two = (uint32_t)(second - a->zero_point2) << (uint32_t)a->left_shift;
    const int32_t left = scaled(one, a->multiplier1, a->shift1), right = scaled(two, a->multiplier2, a->shift2);
    const uint32_t sum = (uint32_t)left + (uint32_t)right;
    const int32_t result = scaled(sum, a->output_multiplier, a->output_shift);
    return (int8_t)clamped(result, a->output_zero_point, a->clamp_min, a->clamp_max);
}

void NPU_SYMBOL(finish)(struct npu_memories *memories, const struct npu_window *window,
                        const struct npu_finish *finish, const struct npu_addition *addition, uint32_t row,
                        uint32_t column, uint32_t channel, uint32_t sum)
{
    const uint32_t block = channel / NPU_COLUMNS;
    const uint32_t at = finish->parameters + 4u * (block * NPU_CHANNEL_WORDS * NPU_COLUMNS + channel % NPU_COLUMNS);
    const uint32_t biased = sum + (uint32_t)word_at(memories, at);
    const int32_t multiplier = word_at(memories, at + 4u * NPU_COLUMNS);
    const int32_t shift = word_at(memories, at + 8u * NPU_COLUMNS);
    const int32_t value =
        finish->single ? scaled_in_single(biased, multiplier, shift) : scaled(biased, multiplier, shift);
    int8_t result = (int8_t)clamped(value, finish->output_zero_point, finish->clamp_min, finish->clamp_max);
    if (finish->adds) {
        const uint32_t from =
            finish->residual + row * finish->residual_row + column * finish->residual_pixel + channel;
        result = NPU_SYMBOL(added)(addition, result, (int8_t)memories->activations[from]);
    }
    memories->activations[window->output + row * window->output_row + column * window->output_pixel + channel] =
        (uint8_t)result;
}
