/* Layers with weights of int16 activations for Arm Helium: eight products an instruction.
 *
 * Weights stay bytes, which are loaded widened. Biases have 64 bits in a model; where the compiler finds that a sum with
 * its bias fits 32 bits, sums have 32. One becomes ((sum * multiplier >> 32) >> shift, rounded). */
#ifndef UACCEL_INT16_HELIUM_H
#define UACCEL_INT16_HELIUM_H

#include "uaccel_depthwise16.h"
#include "uaccel_helium.h"

/* What the loops below work on; they count in the last three. */
struct uaccel_int16_helium_job {
    const int16_t *first, *second; /* runs of inputs, in whole vectors of eight */
    const int16_t *end;            /* of the first */
    int32_t lowest, highest;
    int16_t *output1, *output2;
    uaccel_index channels;
};
UACCEL_AT4(uaccel_int16_helium_job, 0, first, second, end, lowest);
UACCEL_AT4(uaccel_int16_helium_job, 16, highest, output1, output2, channels);

/* Eight sums at a time in r0, r4, r8, r12 and r2, r6, r10, lr, which become q0 and q1. `begin` loads biases, `step` adds
 * up what eight inputs give, and `finish` multiplies, shifts and stores; r1 is the stream, r3 and r5 are the inputs, r9
 * is the job. q6 and q7: the bounds. */
#define UACCEL_INT16_HELIUM_LOOP(begin, step, finish)                                                                 \
    __asm__(UACCEL_HELIUM_MACROS                                                                                      \
            "push {r4-r11, lr}\n"                                                                                     \
            "vpush {d12-d15}\n"                                                                                       \
            "mov r9, r0\n"                                                                                            \
            "ldrd r2, r3, [r9, #12]\n"                                                                                \
            "vdup.32 q6, r2\n"                                                                                        \
            "vdup.32 q7, r3\n"                                                                                        \
            "1: ldrd r3, r5, [r9]\n"                                                                                  \
            "ldr r7, [r9, #8]\n"                                                                                      \
            "sub r11, r7, r3\n"                                                                                       \
            "and r11, r11, #63\n"                                                                                     \
            "sub r11, r7, r11\n" /* where whole rounds of four steps end */                                           \
            begin                                                                                                     \
            "b 3f\n"                                                                                                  \
            "2: .rept 4\n" step ".endr\n"                                                                             \
            "3: cmp r3, r11\n"                                                                                        \
            "bne 2b\n"                                                                                                \
            "b 5f\n"                                                                                                  \
            "4:\n" step                                                                                               \
            "5: cmp r3, r7\n"                                                                                         \
            "bne 4b\n"                                                                                                \
            "uaccel_gather r0, r4, r8, r12, r2, r6, r10, lr\n"                                                        \
            "vldrw.u32 q2, [r1], #16\n"                                                                               \
            "vldrw.u32 q3, [r1], #16\n"                                                                               \
            finish                                                                                                    \
            "bgt 1b\n"                                                                                                \
            "vpop {d12-d15}\n"                                                                                        \
            "pop {r4-r11, pc}\n" UACCEL_HELIUM_END_MACROS)

UACCEL_ASSEMBLY_BEGIN

/* Four channels of two pixels at a time. stream, of each four: biases, of each eight inputs eight bytes a channel,
 * multipliers, and shifts, negative. */
UACCEL_ASSEMBLY void uaccel_int16_helium_2x4(struct uaccel_int16_helium_job *job, const int32_t *stream)
{
    UACCEL_INT16_HELIUM_LOOP("ldrd r0, r4, [r1], #8\n"
                             "ldrd r8, r12, [r1], #8\n"
                             "mov r2, r0\n"
                             "mov r6, r4\n"
                             "mov r10, r8\n"
                             "mov lr, r12\n",
                             "vldrb.s16 q2, [r1], #8\n"
                             "vldrh.u16 q0, [r3], #16\n"
                             "vldrh.u16 q1, [r5], #16\n"
                             "vldrb.s16 q3, [r1], #8\n"
                             "vmladava.s16 r0, q0, q2\n"
                             "vmladava.s16 r2, q1, q2\n"
                             "vldrb.s16 q2, [r1], #8\n"
                             "vmladava.s16 r4, q0, q3\n"
                             "vmladava.s16 r6, q1, q3\n"
                             "vldrb.s16 q3, [r1], #8\n"
                             "vmladava.s16 r8, q0, q2\n"
                             "vmladava.s16 r10, q1, q2\n"
                             "vmladava.s16 r12, q0, q3\n"
                             "vmladava.s16 lr, q1, q3\n",
                             "vmulh.s32 q0, q0, q2\n"
                             "vmulh.s32 q1, q1, q2\n"
                             "vrshl.s32 q0, q0, q3\n"
                             "vrshl.s32 q1, q1, q3\n"
                             "vmax.s32 q0, q0, q6\n"
                             "vmax.s32 q1, q1, q6\n"
                             "vmin.s32 q0, q0, q7\n"
                             "vmin.s32 q1, q1, q7\n"
                             "ldrd r2, r3, [r9, #20]\n"
                             "ldr r4, [r9, #28]\n"
                             "vctp.32 r4\n"
                             "vpstt\n"
                             "vstrht.32 q0, [r2], #8\n"
                             "vstrht.32 q1, [r3], #8\n"
                             "strd r2, r3, [r9, #20]\n"
                             "subs r4, #4\n"
                             "str r4, [r9, #28]\n");
}

/* Eight channels of one pixel, or units of a row, at a time. stream, of each eight: as above, but with eight of each. */
UACCEL_ASSEMBLY void uaccel_int16_helium_1x8(struct uaccel_int16_helium_job *job, const int32_t *stream)
{
    UACCEL_INT16_HELIUM_LOOP("ldrd r0, r4, [r1], #8\n"
                             "ldrd r8, r12, [r1], #8\n"
                             "ldrd r2, r6, [r1], #8\n"
                             "ldrd r10, lr, [r1], #8\n",
                             "vldrb.s16 q2, [r1], #8\n"
                             "vldrh.u16 q0, [r3], #16\n"
                             "vldrb.s16 q3, [r1], #8\n"
                             "vmladava.s16 r0, q0, q2\n"
                             "vldrb.s16 q2, [r1], #8\n"
                             "vmladava.s16 r4, q0, q3\n"
                             "vldrb.s16 q3, [r1], #8\n"
                             "vmladava.s16 r8, q0, q2\n"
                             "vldrb.s16 q2, [r1], #8\n"
                             "vmladava.s16 r12, q0, q3\n"
                             "vldrb.s16 q3, [r1], #8\n"
                             "vmladava.s16 r2, q0, q2\n"
                             "vldrb.s16 q2, [r1], #8\n"
                             "vmladava.s16 r6, q0, q3\n"
                             "vldrb.s16 q3, [r1], #8\n"
                             "vmladava.s16 r10, q0, q2\n"
                             "vmladava.s16 lr, q0, q3\n",
                             "vmulh.s32 q0, q0, q2\n"
                             "vmulh.s32 q1, q1, q3\n"
                             "vldrw.u32 q2, [r1], #16\n"
                             "vldrw.u32 q3, [r1], #16\n"
                             "vrshl.s32 q0, q0, q2\n"
                             "vrshl.s32 q1, q1, q3\n"
                             "vmax.s32 q0, q0, q6\n"
                             "vmax.s32 q1, q1, q6\n"
                             "vmin.s32 q0, q0, q7\n"
                             "vmin.s32 q1, q1, q7\n"
                             "ldr r2, [r9, #20]\n"
                             "ldr r4, [r9, #28]\n"
                             "vctp.32 r4\n"
                             "vpst\n"
                             "vstrht.32 q0, [r2], #8\n"
                             "subs r4, #4\n"
                             "ble 6f\n"
                             "vctp.32 r4\n"
                             "vpst\n"
                             "vstrht.32 q1, [r2], #8\n"
                             "6: str r2, [r9, #20]\n"
                             "subs r4, #4\n"
                             "str r4, [r9, #28]\n");
}

UACCEL_ASSEMBLY_END

/* `count` elements, which may be none. */
UACCEL_KERNEL void uaccel_int16_helium_copy(int16_t *target, const int16_t *source, uaccel_index count)
{
    for (; count >= 8; count -= 8) {
        vstrhq_s16(target, vldrhq_s16(source));
        target += 8;
        source += 8;
    }
    if (count > 0) {
        const mve_pred16_t some = vctp16q((uint32_t)count);
        vstrhq_p_s16(target, vldrhq_z_s16(source, some), some);
    }
}

/* A fully connected layer of one row. */
struct uaccel_fully_connected_helium16 {
    uaccel_index depth, units;
    uaccel_index length; /* of the row, in whole vectors of eight */
    int32_t clamp_min, clamp_max;
};

/* scratch: the row in whole vectors, unless it is. */
UACCEL_SHARED void uaccel_fully_connected_helium_s16(const struct uaccel_fully_connected_helium16 *p,
                                                     const int16_t *input, const int32_t *stream, int16_t *output,
                                                     void *scratch)
{
    if (p->length > p->depth) { /* what follows the row has weights of zero */
        uaccel_int16_helium_copy(scratch, input, p->depth);
        input = scratch;
    }
    struct uaccel_int16_helium_job job = {
        input, input, input + p->length, p->clamp_min, p->clamp_max, output, output, p->units,
    };
    uaccel_int16_helium_1x8(&job, stream);
}

/* Convolution of one group, whose channels may be some of a pixel's. A window is a run of elements, and what follows it
 * up to a whole vector has weights of zero. */
struct uaccel_conv2d_helium16 {
    struct uaccel_geometry geo;
    uaccel_index out_pixel, out_row, in_pixel; /* elements from one to the next */
    uaccel_index runs; /* 0: the pixels of a window's row lie apart */
    uaccel_index length; /* of a window, in whole vectors of eight */
    int32_t clamp_min, clamp_max;
};

/* One row of a window, whose borders are zeros already. */
UACCEL_KERNEL void uaccel_conv2d_helium16_row(const struct uaccel_conv2d_helium16 *p, const int16_t *row,
                                              uaccel_index left, int16_t *copy)
{
    if (p->runs) {
        const uaccel_index first = left < 0 ? -left : 0;
        const uaccel_index room = p->geo.in_width - left;
        const uaccel_index last = room < p->geo.kernel_width ? room : p->geo.kernel_width;
        if (first < last) {
            uaccel_int16_helium_copy(copy + first * p->geo.in_channels, row + (left + first) * p->in_pixel,
                                     (last - first) * p->geo.in_channels);
        }
        return;
    }
    for (uaccel_index kx = 0; kx < p->geo.kernel_width; ++kx) {
        const uaccel_index x = left + kx * p->geo.dilation_width;
        if (x >= 0 && x < p->geo.in_width) {
            uaccel_int16_helium_copy(copy + kx * p->geo.in_channels, row + x * p->in_pixel, p->geo.in_channels);
        }
    }
}

/* The window of one output pixel: where it lies, if that is one run, else a copy with zeros around it. */
UACCEL_SHARED const int16_t *uaccel_conv2d_helium16_window(const struct uaccel_conv2d_helium16 *p,
                                                           const int16_t *input, uaccel_index pixel, int16_t *copy)
{
    const uaccel_index top = pixel / p->geo.out_width * p->geo.stride_height - p->geo.pad_top;
    const uaccel_index left = pixel % p->geo.out_width * p->geo.stride_width - p->geo.pad_left;
    const uaccel_index bottom = top + (p->geo.kernel_height - 1) * p->geo.dilation_height;
    const uaccel_index right = left + (p->geo.kernel_width - 1) * p->geo.dilation_width;
    const uaccel_index row = p->geo.in_width * p->in_pixel, place = top * row + left * p->in_pixel;
    const uaccel_index end = p->geo.in_height * row - (p->in_pixel - p->geo.in_channels);
    const bool inside = top >= 0 && left >= 0 && bottom < p->geo.in_height && right < p->geo.in_width;
    if (inside && p->geo.kernel_height == 1 && p->runs && place + p->length <= end) {
        return input + place;
    }
    if (!inside) {
        uaccel_helium_fill((int8_t *)copy, 0, p->length * (uaccel_index)sizeof(int16_t));
    }
    for (uaccel_index ky = 0; ky < p->geo.kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->geo.dilation_height;
        if (y >= 0 && y < p->geo.in_height) {
            uaccel_conv2d_helium16_row(p, input + y * row, left,
                                       copy + ky * p->geo.kernel_width * p->geo.in_channels);
        }
    }
    return copy;
}

/* How far the results of the next pixel are: `pixel` elements, and those between two rows behind the last column. */
UACCEL_KERNEL uaccel_index uaccel_next_pixel(uaccel_index *column, uaccel_index width, uaccel_index pixel,
                                             uaccel_index row)
{
    if (++*column < width) {
        return pixel;
    }
    *column = 0;
    return row - (width - 1) * pixel;
}

/* scratch: two windows. */
UACCEL_SHARED void uaccel_conv2d_helium_s16(const struct uaccel_conv2d_helium16 *p, const int16_t *input,
                                            const int32_t *stream, int16_t *output, void *scratch)
{
    const uaccel_index pixels = p->geo.out_height * p->geo.out_width;
    int16_t *copies = scratch;
    uaccel_index column = 0;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels; pixel += 2) {
            /* the second one of a last pair may be the first again */
            const bool both = pixel + 1 < pixels;
            const int16_t *first = uaccel_conv2d_helium16_window(p, input, pixel, copies), *second = first;
            int16_t *const result = output;
            if (both) {
                second = uaccel_conv2d_helium16_window(p, input, pixel + 1, copies + p->length);
                output += uaccel_next_pixel(&column, p->geo.out_width, p->out_pixel, p->out_row);
            }
            struct uaccel_int16_helium_job job = {
                first, second, first + p->length, p->clamp_min, p->clamp_max, result, output, p->geo.out_channels,
            };
            uaccel_int16_helium_2x4(&job, stream);
            output += uaccel_next_pixel(&column, p->geo.out_width, p->out_pixel, p->out_row);
        }
        input += p->geo.in_height * p->geo.in_width * p->in_pixel;
    }
}

/* Four results of a depthwise convolution. */
UACCEL_KERNEL int32x4_t uaccel_depthwise_conv2d_helium16_finish(const struct uaccel_depthwise16 *p, int32x4_t sum,
                                                                const int32_t *multipliers, const int32_t *shifts)
{
    sum = vrshlq_s32(vmulhq_s32(sum, vldrwq_s32(multipliers)), vldrwq_s32(shifts));
    return vminq_s32(vmaxq_s32(sum, vdupq_n_s32(p->clamp_min)), vdupq_n_s32(p->clamp_max));
}

/* How far behind the first one's the channel of the input is that each of eight reads. */
UACCEL_KERNEL uint16x8_t uaccel_depthwise_conv2d_helium16_from(const struct uaccel_depthwise16 *p, uaccel_index channel)
{
    uint16_t places[8] = {0};
    if (p->multiplier % 8 != 0) {
        uaccel_index rest = 8 % p->multiplier == 0 ? 0 : channel % p->multiplier;
        for (uaccel_index i = 1; i < 8; ++i) {
            rest = rest + 1 < p->multiplier ? rest + 1 : 0;
            places[i] = (uint16_t)(places[i - 1] + (rest == 0 ? 1 : 0));
        }
    }
    return vldrhq_u16(places);
}

UACCEL_KERNEL int16x8_t uaccel_depthwise_conv2d_helium16_load(const struct uaccel_depthwise16 *p, const int16_t *pixel,
                                                              uint16x8_t from, bool whole, mve_pred16_t some)
{
    if (p->multiplier > 1) {
        return vldrhq_gather_shifted_offset_z_s16(pixel, from, some);
    }
    return whole ? vldrhq_s16(pixel) : vldrhq_z_s16(pixel, some);
}

/* Eight channels of a depthwise convolution under one window, or as many as `some` says where they are not `whole`.
 * stream: biases, of each tap eight bytes, multipliers, and shifts, negative; of biases, multipliers and shifts those of
 * even channels come first. */
UACCEL_KERNEL void uaccel_depthwise_conv2d_helium16_block(const struct uaccel_depthwise16 *p,
                                                          const struct uaccel_depthwise16_taps *taps,
                                                          uaccel_index channel, const int32_t *stream, bool whole,
                                                          mve_pred16_t some, int16_t *output)
{
    const int32_t *ends = stream + 8 + 2 * p->geo.kernel_height * p->geo.kernel_width;
    const int8_t *weights = (const int8_t *)(stream + 8 + 2 * taps->first);
    const int16_t *row = taps->pixels + channel / p->multiplier;
    const uint16x8_t from = uaccel_depthwise_conv2d_helium16_from(p, channel);
    int32x4_t even = vldrwq_s32(stream), odd = vldrwq_s32(stream + 4);
    for (uaccel_index ky = taps->height; ky > 0; --ky) {
        const int16_t *pixel = row;
        const int8_t *weight = weights;
        for (uaccel_index kx = taps->width; kx > 0; --kx) {
            const int16x8_t x = uaccel_depthwise_conv2d_helium16_load(p, pixel, from, whole, some);
            const int16x8_t w = vldrbq_s16(weight);
            even = vaddq_s32(even, vmullbq_int_s16(x, w));
            odd = vaddq_s32(odd, vmulltq_int_s16(x, w));
            pixel += p->geo.dilation_width * p->geo.in_channels;
            weight += 8;
        }
        weights += 8 * p->geo.kernel_width;
        row += p->geo.dilation_height * p->geo.in_width * p->geo.in_channels;
    }
    even = uaccel_depthwise_conv2d_helium16_finish(p, even, ends, ends + 8);
    odd = uaccel_depthwise_conv2d_helium16_finish(p, odd, ends + 4, ends + 12);
    vstrhq_p_s16(output, vmovntq_s32(vreinterpretq_s16_s32(even), odd), some);
}

UACCEL_KERNEL void uaccel_depthwise_conv2d_helium16_window(const struct uaccel_depthwise16 *p,
                                                           const struct uaccel_depthwise16_taps *taps,
                                                           const int32_t *stream, int16_t *output)
{
    const uaccel_index words = 24 + 2 * p->geo.kernel_height * p->geo.kernel_width;
    uaccel_index c = 0;
    for (; c + 8 <= p->geo.out_channels; c += 8) {
        uaccel_depthwise_conv2d_helium16_block(p, taps, c, stream, true, vctp16q(8), output + c);
        stream += words;
    }
    if (c < p->geo.out_channels) {
        const mve_pred16_t some = vctp16q((uint32_t)(p->geo.out_channels - c));
        uaccel_depthwise_conv2d_helium16_block(p, taps, c, stream, false, some, output + c);
    }
}

UACCEL_DEPTHWISE16(uaccel_depthwise_conv2d_helium_s16, uaccel_depthwise_conv2d_helium16_window)

#endif
