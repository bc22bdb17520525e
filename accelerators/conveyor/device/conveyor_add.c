/* The sum of two tensors of one shape, each with a scale of its own. */
#include "conveyor_device.h"

enum { FIRST, SECOND, OUTPUT, TENSORS };
enum {
    ELEMENTS,
    LEFT_SHIFT,
    ZERO_POINT1,
    MULTIPLIER1,
    SHIFT1,
    ZERO_POINT2,
    MULTIPLIER2,
    SHIFT2,
    OUTPUT_ZERO_POINT,
    OUTPUT_MULTIPLIER,
    OUTPUT_SHIFT,
    CLAMP_MIN,
    CLAMP_MAX,
    FIELDS
};
enum { CHUNK = 1024, LANES = 16, MOST_LEFT_SHIFT = 30 };

static enum conveyor_error check(const struct conveyor *c, struct conveyor_tensor *tensors)
{
    const int32_t elements = conveyor_field(c, ELEMENTS);
    const int32_t left_shift = conveyor_field(c, LEFT_SHIFT);
    if (elements < 1) {
        return CONVEYOR_BAD_SHAPE;
    }
    if (!conveyor_rest_is_zero(c, TENSORS, FIELDS)) {
        return CONVEYOR_BAD_OPERATION;
    }
    if (left_shift < 0 || left_shift > MOST_LEFT_SHIFT || !conveyor_is_int8(conveyor_field(c, ZERO_POINT1)) ||
        !conveyor_is_int8(conveyor_field(c, ZERO_POINT2)) || !conveyor_is_int8(conveyor_field(c, OUTPUT_ZERO_POINT)) ||
        !conveyor_is_scale(conveyor_field(c, MULTIPLIER1), conveyor_field(c, SHIFT1)) ||
        !conveyor_is_scale(conveyor_field(c, MULTIPLIER2), conveyor_field(c, SHIFT2)) ||
        !conveyor_is_scale(conveyor_field(c, OUTPUT_MULTIPLIER), conveyor_field(c, OUTPUT_SHIFT)) ||
        !conveyor_is_range(conveyor_field(c, CLAMP_MIN), conveyor_field(c, CLAMP_MAX))) {
        return CONVEYOR_BAD_QUANTISATION;
    }
    for (uint32_t i = 0; i < TENSORS; ++i) {
        const enum conveyor_error error = conveyor_find(c, i, (uint64_t)elements, i == OUTPUT, &tensors[i]);
        if (error != CONVEYOR_GOOD) {
            return error;
        }
    }
    return CONVEYOR_GOOD;
}

/* One operand on the scale that both share. */
static int32_t rescaled(const struct conveyor *c, int32_t value, uint32_t zero_point)
{
    const uint32_t centred = (uint32_t)(value - conveyor_field(c, zero_point));
    const int32_t raised = conveyor_wrapped(centred << conveyor_field(c, LEFT_SHIFT));
    return conveyor_scaled(raised, conveyor_field(c, zero_point + 1u), conveyor_field(c, zero_point + 2u));
}

static int8_t sum(const struct conveyor *c, int8_t first, int8_t second)
{
    const uint32_t total = (uint32_t)rescaled(c, first, ZERO_POINT1) + (uint32_t)rescaled(c, second, ZERO_POINT2);
    const int64_t scaled = conveyor_scaled(conveyor_wrapped(total), conveyor_field(c, OUTPUT_MULTIPLIER),
                                           conveyor_field(c, OUTPUT_SHIFT));
    return conveyor_clamped(scaled + conveyor_field(c, OUTPUT_ZERO_POINT), conveyor_field(c, CLAMP_MIN),
                            conveyor_field(c, CLAMP_MAX));
}

static enum conveyor_error run_chunk(const struct conveyor *c, const struct conveyor_tensor *tensors, uint32_t at,
                                     uint32_t count)
{
    int8_t first[CHUNK];
    int8_t second[CHUNK];
    if (conveyor_load(c, tensors[FIRST], at, first, count) != CONVEYOR_GOOD ||
        conveyor_load(c, tensors[SECOND], at, second, count) != CONVEYOR_GOOD) {
        return CONVEYOR_BAD_BUS;
    }
    for (uint32_t i = 0; i < count; ++i) {
        first[i] = sum(c, first[i], second[i]);
    }
    return conveyor_store(c, tensors[OUTPUT], at, first, count);
}

enum conveyor_error conveyor_add(struct conveyor *c)
{
    struct conveyor_tensor tensors[TENSORS];
    enum conveyor_error error = check(c, tensors);
    if (error != CONVEYOR_GOOD) {
        return error;
    }
    const uint32_t elements = (uint32_t)conveyor_field(c, ELEMENTS);
    for (uint32_t at = 0; at < elements && error == CONVEYOR_GOOD; at += CHUNK) {
        error = run_chunk(c, tensors, at, elements - at < CHUNK ? elements - at : CHUNK);
    }
    conveyor_count(c, elements, LANES, 3u * (uint64_t)elements);
    return error;
}
