#include "dot4.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "dot4_instructions.h"
#include "uaccel_accelerator.h"

struct dot4_layer {
    int32_t batch, in_height, in_width, channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_height, stride_width, dilation_height, dilation_width;
    int32_t pad_top, pad_left;
    int32_t input_zero_point, output_zero_point, lowest, highest;
};

enum { BIAS = 0, MULTIPLIER = 4, SHIFT = 8, CONSTANTS = 12 }; /* of four channels */

static struct dot4_layer layer_of(const int32_t *numbers)
{
    struct dot4_layer layer;
    memcpy(&layer, numbers, sizeof layer);
    (void)dot4_range(layer.output_zero_point, (layer.lowest & 0xFF) | (layer.highest & 0xFF) << 8);
    return layer;
}

/* Cores with such instructions seldom read words from anywhere; an application's tensors may lie anywhere. */
static bool lies_at_words(const int8_t *at)
{
    return ((uintptr_t)at & 3u) == 0;
}

static int32_t word_at(const int8_t *at)
{
    int32_t word;
    memcpy(&word, __builtin_assume_aligned(at, 4), sizeof word);
    return word;
}

/* Four channels of two pixels, of which the second may be the first again. */
static void dots(const int8_t *first, const int8_t *second, int32_t words, const int32_t *weights,
                 const int32_t *constants, int8_t *results)
{
    (void)dot4_begin0(constants[0], constants[0]);
    (void)dot4_begin1(constants[1], constants[1]);
    (void)dot4_begin2(constants[2], constants[2]);
    (void)dot4_begin3(constants[3], constants[3]);
    for (const int32_t *const end = weights + 4 * words; weights != end; weights += 4) {
        const int32_t x = word_at(first), y = word_at(second);
        const int32_t w0 = weights[0], w1 = weights[1], w2 = weights[2], w3 = weights[3];
        (void)dot4_add0(x, w0);
        (void)dot4_add4(y, w0);
        (void)dot4_add1(x, w1);
        (void)dot4_add5(y, w1);
        (void)dot4_add2(x, w2);
        (void)dot4_add6(y, w2);
        (void)dot4_add3(x, w3);
        (void)dot4_add7(y, w3);
        first += 4;
        second += 4;
    }
    const int32_t *const m = constants + MULTIPLIER, *const s = constants + SHIFT;
    results[0] = (int8_t)dot4_finish0(m[0], s[0]);
    results[1] = (int8_t)dot4_finish1(m[1], s[1]);
    results[2] = (int8_t)dot4_finish2(m[2], s[2]);
    results[3] = (int8_t)dot4_finish3(m[3], s[3]);
    results[4] = (int8_t)dot4_finish4(m[0], s[0]);
    results[5] = (int8_t)dot4_finish5(m[1], s[1]);
    results[6] = (int8_t)dot4_finish6(m[2], s[2]);
    results[7] = (int8_t)dot4_finish7(m[3], s[3]);
}

/* The window of an output pixel, borders and all, side by side. */
static void copy_window(const struct dot4_layer *p, const int8_t *image, int32_t pixel, int8_t *window)
{
    const int32_t top = pixel / p->out_width * p->stride_height - p->pad_top;
    const int32_t left = pixel % p->out_width * p->stride_width - p->pad_left;
    const bool whole = p->dilation_width == 1 && left >= 0 && left + p->kernel_width <= p->in_width;
    for (int32_t ky = 0; ky < p->kernel_height; ++ky) {
        const int32_t y = top + ky * p->dilation_height;
        const bool inside = y >= 0 && y < p->in_height;
        const int32_t pieces = inside && whole ? 1 : p->kernel_width;
        const size_t bytes = (size_t)(p->kernel_width / pieces * p->channels);
        for (int32_t kx = 0; kx < pieces; ++kx) {
            const int32_t x = left + kx * p->dilation_width;
            if (inside && x >= 0 && x < p->in_width) {
                memcpy(window, image + (y * p->in_width + x) * p->channels, bytes);
            } else {
                memset(window, (int)p->input_zero_point, bytes);
            }
            window += bytes;
        }
    }
}

/* Whether each input pixel is a window already, of whole words. */
static bool is_in_place(const struct dot4_layer *p, const int8_t *input)
{
    return lies_at_words(input) && p->kernel_height * p->kernel_width * p->stride_height * p->stride_width == 1 &&
           p->channels % 4 == 0 && p->in_height == p->out_height && p->in_width == p->out_width;
}

int32_t dot4_conv2d(const int8_t *input, const int32_t *weights, const int32_t *constants, const int32_t *layer,
                    int8_t *output, void *scratch)
{
    const struct dot4_layer p = layer_of(layer);
    const int32_t words = (p.kernel_height * p.kernel_width * p.channels + 3) / 4;
    const int32_t pixels = p.out_height * p.out_width, image = p.in_height * p.in_width * p.channels;
    const bool in_place = is_in_place(&p, input);
    for (int32_t pixel = 0; pixel < p.batch * pixels; pixel += 2) {
        const int32_t next = pixel + 1 < p.batch * pixels ? pixel + 1 : pixel;
        const int8_t *first = input + pixel * p.channels, *second = input + next * p.channels;
        if (!in_place) {
            int8_t *const windows = scratch;
            copy_window(&p, input + pixel / pixels * image, pixel % pixels, windows);
            copy_window(&p, input + next / pixels * image, next % pixels, windows + 4 * words);
            first = windows;
            second = windows + 4 * words;
        }
        for (int32_t channel = 0; channel < p.out_channels; channel += 4) {
            const int32_t left = p.out_channels - channel;
            const size_t count = left < 4 ? (size_t)left : 4u;
            int8_t results[8];
            dots(first, second, words, weights + channel * words, constants + channel / 4 * CONSTANTS, results);
            memcpy(output + pixel * p.out_channels + channel, results, count);
            memcpy(output + next * p.out_channels + channel, results + 4, count);
        }
    }
    UACCEL_ACCOUNT(1, 0);
    return UACCEL_ACCELERATOR_OK;
}

/* Four channels of a pixel, from all taps of its window that lie in the image; the others count as the zero point. */
static inline __attribute__((always_inline)) void lanes(const struct dot4_layer *p, const int8_t *image, bool at_words,
                                                        int32_t top, int32_t left, const int32_t *weights,
                                                        const int32_t *constants, int8_t *results)
{
    const int32_t border = (int32_t)((uint32_t)(p->input_zero_point & 0xFF) * 0x01010101u);
    (void)dot4_begin0(constants[0], 0);
    (void)dot4_begin1(constants[1], 0);
    (void)dot4_begin2(constants[2], 0);
    (void)dot4_begin3(constants[3], 0);
    for (int32_t ky = 0; ky < p->kernel_height; ++ky) {
        const int32_t y = top + ky * p->dilation_height;
        const bool inside = y >= 0 && y < p->in_height;
        for (int32_t kx = 0; kx < p->kernel_width; ++kx) {
            const int32_t x = left + kx * p->dilation_width;
            const bool there = inside && x >= 0 && x < p->in_width;
            int32_t word = border;
            if (there && at_words) {
                word = word_at(image + (y * p->in_width + x) * p->channels);
            } else if (there) {
                memcpy(&word, image + (y * p->in_width + x) * p->channels, sizeof word);
            }
            (void)dot4_lanes0(word, *weights++);
        }
    }
    const int32_t *const m = constants + MULTIPLIER, *const s = constants + SHIFT;
    results[0] = (int8_t)dot4_finish0(m[0], s[0]);
    results[1] = (int8_t)dot4_finish1(m[1], s[1]);
    results[2] = (int8_t)dot4_finish2(m[2], s[2]);
    results[3] = (int8_t)dot4_finish3(m[3], s[3]);
}

/* All of a layer. What reads words alone is a loop of its own. */
static inline __attribute__((always_inline)) void all_lanes(const struct dot4_layer *p, const int8_t *input,
                                                            bool at_words, const int32_t *weights,
                                                            const int32_t *constants, int8_t *output)
{
    const int32_t taps = p->kernel_height * p->kernel_width;
    for (int32_t n = 0; n < p->batch; ++n) {
        for (int32_t pixel = 0; pixel < p->out_height * p->out_width; ++pixel) {
            const int32_t top = pixel / p->out_width * p->stride_height - p->pad_top;
            const int32_t left = pixel % p->out_width * p->stride_width - p->pad_left;
            for (int32_t channel = 0; channel < p->channels; channel += 4) {
                lanes(p, input + channel, at_words, top, left, weights + channel / 4 * taps,
                      constants + channel / 4 * CONSTANTS, output);
                output += 4;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

int32_t dot4_depthwise(const int8_t *input, const int32_t *weights, const int32_t *constants, const int32_t *layer,
                       int8_t *output, void *scratch)
{
    const struct dot4_layer p = layer_of(layer);
    (void)scratch;
    if (lies_at_words(input)) {
        all_lanes(&p, input, true, weights, constants, output);
    } else {
        all_lanes(&p, input, false, weights, constants, output);
    }
    UACCEL_ACCOUNT(1, 0);
    return UACCEL_ACCELERATOR_OK;
}
