/* What makes each element of an output from one of an input, portable C: tables, curves, conversions of floats. */
#ifndef UACCEL_ELEMENTWISE_H
#define UACCEL_ELEMENTWISE_H

#include "uaccel_fixedpoint.h"

/* A kernel: `structure` has the number of elements; `value` gives a result of (p, element), in range. */
#define UACCEL_ELEMENTWISE(name, structure, from_type, to_type, value)                         \
    UACCEL_KERNEL void name(const struct structure *p, const from_type *input, to_type *output) \
    {                                                                                          \
        for (uaccel_index i = 0; i < p->elements; ++i) {                                       \
            output[i] = (to_type)value(p, input[i]);                                           \
        }                                                                                      \
    }

/* A function of one 8-bit variable, as a table of its 256 values. */
struct uaccel_lookup {
    uaccel_index elements;
};

/* The bits of an element, signed or not, are the index; so the bytes need no type here. */
UACCEL_KERNEL void uaccel_lookup(const struct uaccel_lookup *p, const void *input, const void *table, void *output)
{
    const uint8_t *from = input, *values = table;
    uint8_t *to = output;
    uaccel_index left = p->elements;
    for (; left >= 4; left -= 4) {
        const uint8_t a = values[from[0]], b = values[from[1]], c = values[from[2]], d = values[from[3]];
        to[0] = a;
        to[1] = b;
        to[2] = c;
        to[3] = d;
        from += 4;
        to += 4;
    }
    for (; left > 0; --left) {
        *to++ = values[*from++];
    }
}

/* A function of one 8-bit variable whose results stay real: a table of its 256 values. */
struct uaccel_float_lookup {
    uaccel_index elements;
};

/* The bits of an element are the index. Nothing is computed, so a CPU without an FPU is as fast. */
UACCEL_KERNEL void uaccel_float_lookup(const struct uaccel_float_lookup *p, const void *input, const float *table,
                                       void *output)
{
    const uint8_t *from = input;
    unsigned char *to = output;
    for (uaccel_index i = 0; i < p->elements; ++i) {
        memcpy(to, &table[from[i]], sizeof *table);
        to += sizeof *table;
    }
}

/* A function of one 16-bit variable, as polynomials of the third degree and tables. */
struct uaccel_lookup16 {
    uaccel_index elements;
    int32_t bits;     /* of the places in a segment */
    int32_t fraction; /* bits after the point */
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_lookup16_step(int32_t factor, int32_t place, int32_t bits)
{
    return (int32_t)(((int64_t)factor * place) >> bits);
}

/* segments: of each the whole part and the fraction of its first result, and the factors of the place, its square and
 * its cube; or INT32_MIN in the place of the last, and the number of its first result in `stored`. */
UACCEL_KERNEL void uaccel_lookup16(const struct uaccel_lookup16 *p, const int16_t *input, const int32_t *segments,
                                   const int16_t *stored, int16_t *output)
{
    for (uaccel_index i = 0; i < p->elements; ++i) {
        const int32_t value = (int32_t)input[i] + 32768;
        const int32_t *const row = segments + (value >> p->bits) * 5;
        const int32_t place = value & ((INT32_C(1) << p->bits) - 1);
        if (row[4] == INT32_MIN) {
            output[i] = stored[row[0] + place];
            continue;
        }
        int32_t total = uaccel_lookup16_step(row[4], place, p->bits) + row[3];
        total = uaccel_lookup16_step(total, place, p->bits) + row[2];
        total = uaccel_lookup16_step(total, place, p->bits) + row[1];
        total = row[0] + ((total + (INT32_C(1) << (p->fraction - 1))) >> p->fraction);
        output[i] = (int16_t)uaccel_clamp(total, p->clamp_min, p->clamp_max);
    }
}

/* Logistic and tanh of 16-bit activations: a table of 256 points with straight lines between them.
 *
 * The table holds the logistic function for arguments from zero; what follows from it for the other half and for
 * tanh is in the constants. */

struct uaccel_sigmoid16 {
    uaccel_index elements;
    int32_t multiplier, right_shift; /* from the input to the table's argument; multiplier at most 32767 */
    int32_t fraction_bits;           /* of the argument between two points */
    int32_t saturated;               /* the interpolated value beyond the last point */
    int32_t origin, mirror, shift;   /* from the interpolated value to the output */
};

UACCEL_KERNEL void uaccel_sigmoid16(const struct uaccel_sigmoid16 *p, const int16_t *input, const uint16_t *points,
                                    int16_t *output)
{
    const int32_t rounding = p->right_shift > 0 ? INT32_C(1) << (p->right_shift - 1) : 0;
    for (uaccel_index i = 0; i < p->elements; ++i) {
        const int32_t scaled = (input[i] * p->multiplier + rounding) >> p->right_shift;
        const int32_t magnitude = scaled < 0 ? -scaled : scaled;
        const int32_t segment = magnitude >> p->fraction_bits;
        const int32_t rest = magnitude & ((INT32_C(1) << p->fraction_bits) - 1);
        int32_t value = p->saturated;
        if (segment < 255) {
            const int32_t low = points[segment], high = points[segment + 1];
            value = (low << p->fraction_bits) + rest * (high - low);
        }
        value = scaled >= 0 ? value - p->origin : p->mirror - 1 - value;
        output[i] = (int16_t)((value + (INT32_C(1) << (p->shift - 1))) >> p->shift);
    }
}

/* One factor for positive values and another for negative ones. */
struct uaccel_two_slopes {
    uaccel_index elements;
    int32_t input_zero_point, output_zero_point;
    int32_t positive_multiplier, positive_shift;
    int32_t negative_multiplier, negative_shift; /* this multiplier may be negative */
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_two_slopes_value(const struct uaccel_two_slopes *p, int32_t stored)
{
    const int32_t value = stored - p->input_zero_point;
    const int32_t scaled = value >= 0 ? uaccel_requantise(value, p->positive_multiplier, p->positive_shift)
                                      : uaccel_requantise(value, p->negative_multiplier, p->negative_shift);
    return uaccel_finish(scaled, p->output_zero_point, p->clamp_min, p->clamp_max);
}

UACCEL_ELEMENTWISE(uaccel_two_slopes_s8, uaccel_two_slopes, int8_t, int8_t, uaccel_two_slopes_value)
UACCEL_ELEMENTWISE(uaccel_two_slopes_s16, uaccel_two_slopes, int16_t, int16_t, uaccel_two_slopes_value)

/* Between single-precision floats and quantised integers; one operation an element is rounded. */
struct uaccel_quantize {
    uaccel_index elements;
    float scale;
    int32_t zero_point;
    int32_t clamp_min, clamp_max;
};

struct uaccel_dequantize {
    uaccel_index elements;
    float scale;
    int32_t zero_point;
};

/* value / scale, clamped, so that the conversion to an integer is defined; a NaN becomes the lowest value. */
UACCEL_KERNEL float uaccel_quantize_steps(const struct uaccel_quantize *p, float value)
{
    const float low = (float)(p->clamp_min - p->zero_point), high = (float)(p->clamp_max - p->zero_point);
    const float quotient = value / p->scale;
    return quotient > low ? (quotient < high ? quotient : high) : low;
}

/* round(value / scale) + zero_point, halves to even. */
UACCEL_KERNEL int32_t uaccel_quantize_value_float32(const struct uaccel_quantize *p, float value)
{
    const float steps = uaccel_quantize_steps(p, value);
    const int32_t whole = (int32_t)steps;
    const float rest = steps - (float)whole;
    const bool odd = (whole & 1) != 0;
    const bool up = rest > 0.5f || (odd && rest >= 0.5f), down = rest < -0.5f || (odd && rest <= -0.5f);
    return whole + (up ? 1 : 0) - (down ? 1 : 0) + p->zero_point;
}

/* round(value / scale) + zero_point, halves away from zero. */
UACCEL_KERNEL int32_t uaccel_quantize_value(const struct uaccel_quantize *p, float value)
{
    const float steps = uaccel_quantize_steps(p, value);
    const int32_t whole = (int32_t)steps;
    const float rest = steps - (float)whole;
    return whole + (rest >= 0.5f ? 1 : 0) - (rest <= -0.5f ? 1 : 0) + p->zero_point;
}

UACCEL_KERNEL float uaccel_dequantize_value(const struct uaccel_dequantize *p, int32_t stored)
{
    return (float)(stored - p->zero_point) * p->scale;
}

#define UACCEL_QUANTIZE(suffix, type)                                                                          \
    UACCEL_ELEMENTWISE(uaccel_quantize_##suffix, uaccel_quantize, float, type, uaccel_quantize_value)          \
    UACCEL_ELEMENTWISE(uaccel_quantize_##suffix##_float32, uaccel_quantize, float, type,                       \
                       uaccel_quantize_value_float32)                                                          \
    UACCEL_ELEMENTWISE(uaccel_dequantize_##suffix, uaccel_dequantize, type, float, uaccel_dequantize_value)

UACCEL_QUANTIZE(s8, int8_t)
UACCEL_QUANTIZE(u8, uint8_t)
UACCEL_QUANTIZE(s16, int16_t)

#undef UACCEL_QUANTIZE

#endif
