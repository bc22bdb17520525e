/* Layers whose weights have four bits, for any CPU, several channels at a time: int8 activations.
 *
 * A load brings the weights of all these channels for one input: those of four channels are the four halves of the
 * bytes of 16 bits, those of eight channels of 32 bits, the first channel lowest. */
#ifndef UACCEL_INT4_BLOCKED_H
#define UACCEL_INT4_BLOCKED_H

#include "uaccel_conv2d_blocked.h"
#include "uaccel_depthwise_conv2d_blocked.h"
#include "uaccel_fully_connected_blocked.h"

/* The weight of channel `number`. */
#define UACCEL_INT4(weights, number) ((int32_t)((uint32_t)(weights) << (28 - 4 * (number))) >> 28)

/* Four output channels of two pixels or rows, of which the second may be the first again. */
UACCEL_SHARED void uaccel_int4_2x4(const struct uaccel_blocked_finish *p, const int8_t *first, const int8_t *second,
                                   uaccel_index depth, const uint16_t *weights, const int32_t *constants,
                                   int8_t *results)
{
    int32_t a0 = constants[0], a1 = constants[4], a2 = constants[8], a3 = constants[12];
    int32_t b0 = a0, b1 = a1, b2 = a2, b3 = a3;
    for (const int8_t *end = first + depth; first != end;) {
        const int32_t x = *first++, y = *second++;
        const uint32_t four = *weights++;
        a0 += x * UACCEL_INT4(four, 0);
        b0 += y * UACCEL_INT4(four, 0);
        a1 += x * UACCEL_INT4(four, 1);
        b1 += y * UACCEL_INT4(four, 1);
        a2 += x * UACCEL_INT4(four, 2);
        b2 += y * UACCEL_INT4(four, 2);
        a3 += x * UACCEL_INT4(four, 3);
        b3 += y * UACCEL_INT4(four, 3);
    }
    results[0] = uaccel_blocked_round(p, a0, constants);
    results[1] = uaccel_blocked_round(p, a1, constants + 4);
    results[2] = uaccel_blocked_round(p, a2, constants + 8);
    results[3] = uaccel_blocked_round(p, a3, constants + 12);
    results[4] = uaccel_blocked_round(p, b0, constants);
    results[5] = uaccel_blocked_round(p, b1, constants + 4);
    results[6] = uaccel_blocked_round(p, b2, constants + 8);
    results[7] = uaccel_blocked_round(p, b3, constants + 12);
}

/* All output channels of two pixels. constants: filled up with channels of zeros to a multiple of four. */
UACCEL_SHARED void uaccel_int4_channels(const struct uaccel_blocked_finish *p, const int8_t *first,
                                        const int8_t *second, uaccel_index depth, const uint16_t *weights,
                                        const int32_t *constants, uaccel_index channels, int8_t *output1,
                                        int8_t *output2)
{
    for (uaccel_index channel = 0; channel < channels; channel += 4) {
        const uaccel_index count = channels - channel < 4 ? channels - channel : 4;
        int8_t results[8];
        uaccel_int4_2x4(p, first, second, depth, weights, constants, results);
        for (uaccel_index i = 0; i < count; ++i) {
            output1[channel + i] = results[i];
            output2[channel + i] = results[4 + i];
        }
        weights += depth;
        constants += 16;
    }
}

/* scratch: two windows. */
UACCEL_SHARED void uaccel_conv2d_int4_blocked_s8(const struct uaccel_conv2d_blocked *p, const int8_t *input,
                                                 const uint16_t *weights, const int32_t *constants, int8_t *output,
                                                 void *scratch)
{
    const uaccel_index depth = p->kernel_height * p->kernel_width * p->in_channels;
    const uaccel_index pixels = p->out_height * p->out_width;
    int8_t *first = scratch, *second = first + depth;
    uaccel_index column = 0;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            const bool both = pixel + 1 < pixels;
            int8_t *const result = output;
            uaccel_conv2d_blocked_window(p, input, pixel, first);
            if (both) {
                uaccel_conv2d_blocked_window(p, input, pixel + 1, second);
                output = uaccel_conv2d_blocked_next(p, output, &column);
            }
            uaccel_int4_channels(&p->finish, first, both ? second : first, depth, weights, constants,
                                 p->out_channels, result, output);
            output = uaccel_conv2d_blocked_next(p, output, &column);
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

UACCEL_SHARED void uaccel_rows_int4_blocked_s8(const struct uaccel_rows_blocked *p, const int8_t *input,
                                               const uint16_t *weights, const int32_t *constants, int8_t *output)
{
    for (uaccel_index row = 0; row < p->rows; row += 2) {
        const uaccel_index more = row + 1 < p->rows ? 1 : 0;
        uaccel_int4_channels(&p->finish, input, input + more * p->depth, p->depth, weights, constants,
                             p->out_channels, output, output + more * p->out_channels);
        input += (1 + more) * p->depth;
        output += (1 + more) * p->out_channels;
    }
}

/* One row, eight units at a time. */
UACCEL_SHARED void uaccel_fully_connected_int4_blocked_s8(const struct uaccel_fully_connected_blocked *p,
                                                          const int8_t *input, const uint32_t *weights,
                                                          const int32_t *constants, int8_t *output)
{
    const int8_t *const end = input + p->depth;
    for (uaccel_index unit = 0; unit < p->units; unit += 8) {
        int32_t a = constants[0], b = constants[4], c = constants[8], d = constants[12];
        int32_t e = constants[16], f = constants[20], g = constants[24], h = constants[28];
        for (const int8_t *x = input; x != end; ++x) {
            const int32_t value = *x;
            const uint32_t eight = *weights++;
            a += value * UACCEL_INT4(eight, 0);
            b += value * UACCEL_INT4(eight, 1);
            c += value * UACCEL_INT4(eight, 2);
            d += value * UACCEL_INT4(eight, 3);
            e += value * UACCEL_INT4(eight, 4);
            f += value * UACCEL_INT4(eight, 5);
            g += value * UACCEL_INT4(eight, 6);
            h += value * UACCEL_INT4(eight, 7);
        }
        const int32_t sums[8] = {a, b, c, d, e, f, g, h};
        for (uaccel_index i = 0; i < 8 && unit + i < p->units; ++i) {
            output[unit + i] = uaccel_blocked_round(&p->finish, sums[i], constants + 4 * i);
        }
        constants += 32;
    }
}

/* Four channels from `channel` on, a multiple of four of them in all. */
UACCEL_SHARED void uaccel_depthwise_int4_quad(const struct uaccel_depthwise_conv2d_blocked *p,
                                              const int8_t *const *taps, uaccel_index channel,
                                              const uint16_t *weights, const int32_t *constants, int8_t *output)
{
    int32_t a = constants[0], b = constants[4], c = constants[8], d = constants[12];
    for (const int8_t *const *end = taps + p->kernel_height * p->kernel_width; taps != end; ++taps) {
        const int8_t *pixel = *taps + channel;
        const uint32_t four = *weights++;
        a += pixel[0] * UACCEL_INT4(four, 0);
        b += pixel[1] * UACCEL_INT4(four, 1);
        c += pixel[2] * UACCEL_INT4(four, 2);
        d += pixel[3] * UACCEL_INT4(four, 3);
    }
    output[0] = uaccel_blocked_round(&p->finish, a, constants);
    output[1] = uaccel_blocked_round(&p->finish, b, constants + 4);
    output[2] = uaccel_blocked_round(&p->finish, c, constants + 8);
    output[3] = uaccel_blocked_round(&p->finish, d, constants + 12);
}

/* scratch: an address for each element of the window, and a pixel. */
UACCEL_SHARED void uaccel_depthwise_conv2d_int4_blocked_s8(const struct uaccel_depthwise_conv2d_blocked *p,
                                                           const int8_t *input, const uint16_t *weights,
                                                           const int32_t *constants, int8_t *output, void *scratch)
{
    const uaccel_index count = p->kernel_height * p->kernel_width;
    const int8_t **taps = scratch;
    int8_t *outside = (int8_t *)(taps + count);
    memset(outside, p->input_zero_point, (size_t)p->channels);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                uaccel_depthwise_blocked_list(p, input, y * p->stride_height - p->pad_top,
                                              x * p->stride_width - p->pad_left, outside, taps);
                for (uaccel_index channel = 0; channel < p->channels; channel += 4) {
                    uaccel_depthwise_int4_quad(p, taps, channel, weights + channel / 4 * count,
                                               constants + channel * 4, output + channel);
                }
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
