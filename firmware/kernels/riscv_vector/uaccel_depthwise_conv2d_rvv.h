/* Depthwise convolution for RISC-V's vector extension, 32 channels of three pixels at a time: int8, one output channel
 * an input channel.
 *
 * Of each output pixel there is a list of what to add to an address for each pixel under its window. Away from the
 * borders all pixels share one. What lies outside is a pixel of zero points. */
#ifndef UACCEL_DEPTHWISE_CONV2D_RVV_H
#define UACCEL_DEPTHWISE_CONV2D_RVV_H

#include "uaccel_rvv.h"

struct uaccel_depthwise_conv2d_rvv {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_rvv_finish finish;
};

/* Of three pixels the lists and the addresses that they are added to. */
struct uaccel_depthwise_rvv_windows {
    const uintptr_t *lists[3];
    uintptr_t from[3];
    uaccel_index count;
};

/* The addresses of the pixels under a window; `outside` for those that there are not. */
UACCEL_SHARED void uaccel_depthwise_rvv_list(const struct uaccel_depthwise_conv2d_rvv *p, uintptr_t input,
                                             uaccel_index top, uaccel_index left, uintptr_t outside, uintptr_t *list)
{
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        const bool inside = y >= 0 && y < p->in_height;
        const uintptr_t row = input + (uintptr_t)(y * p->in_width * p->channels);
        uaccel_index x = left;
        for (uaccel_index kx = 0; kx < p->kernel_width; ++kx, x += p->dilation_width) {
            *list++ = inside && x >= 0 && x < p->in_width ? row + (uintptr_t)(x * p->channels) : outside;
        }
    }
}

#define UACCEL_DEPTHWISE_RVV_PIXEL(number, bytes, halves, sum)                                                       \
    "lw %[a], (%[list" number "])\n\t"                                                                               \
    "addi %[list" number "], %[list" number "], 4\n\t"                                                               \
    "add %[a], %[a], %[from" number "]\n\t"                                                                          \
    "vle8.v " bytes ", (%[a])\n\t"                                                                                   \
    "vsext.vf2 " halves ", " bytes "\n\t"                                                                            \
    "vwmacc.vv " sum ", " halves ", v4\n\t"

/* One block of channels of three pixels: weights in v4 to v7, the pixel in v0 to v3. */
UACCEL_SHARED void uaccel_depthwise_rvv_block(const struct uaccel_rvv_block *p,
                                              const struct uaccel_depthwise_rvv_windows *windows,
                                              uaccel_index channel, int8_t *output)
{
    const int8_t *weights = p->weights;
    const int32_t *constants = p->constants;
    const uintptr_t *list0 = windows->lists[0], *list1 = windows->lists[1], *list2 = windows->lists[2];
    const uintptr_t *const end = list0 + p->depth;
    uintptr_t a;
    __asm volatile(UACCEL_RVV_BEGIN UACCEL_RVV_WORDS("m8") UACCEL_RVV_START UACCEL_RVV_COPY("v16")
                       UACCEL_RVV_COPY("v24") UACCEL_RVV_HALVES("m4")
                   "1:\n\t" UACCEL_RVV_WEIGHTS("v6") UACCEL_RVV_WIDEN("v6") /* may overlap at the end */
                   UACCEL_DEPTHWISE_RVV_PIXEL("0", "v2", "v0", "v8") UACCEL_DEPTHWISE_RVV_PIXEL("1", "v2", "v0", "v16")
                       UACCEL_DEPTHWISE_RVV_PIXEL("2", "v2", "v0", "v24") "bne %[list0], %[end], 1b\n\t"
                   UACCEL_RVV_FINISH(UACCEL_RVV_ON3, "m8", "m4", "m2") UACCEL_RVV_END
                   : [list0] "+&r"(list0), [list1] "+&r"(list1), [list2] "+&r"(list2), [weights] "+&r"(weights),
                     [constants] "+&r"(constants), [output] "+&r"(output), [a] "=&r"(a)
                   : [end] "r"(end), [lanes] "r"(p->lanes), [from0] "r"(windows->from[0] + (uintptr_t)channel),
                     [from1] "r"(windows->from[1] + (uintptr_t)channel),
                     [from2] "r"(windows->from[2] + (uintptr_t)channel), [sign] "r"(p->finish->sign),
                     [low] "r"(p->finish->clamp_min), [high] "r"(p->finish->clamp_max),
                     [last] "r"(output + (windows->count - 1) * p->channels), [channels] "r"(p->channels)
                   : UACCEL_RVV_CLOBBERS);
}

/* All channels of up to three pixels. */
UACCEL_SHARED void uaccel_depthwise_rvv_channels(struct uaccel_rvv_block block,
                                                 const struct uaccel_depthwise_rvv_windows *windows, int8_t *output)
{
    for (uaccel_index channel = 0; channel < block.channels; channel += UACCEL_RVV_LANES) {
        const uaccel_index rest = block.channels - channel;
        block.lanes = rest < UACCEL_RVV_LANES ? rest : UACCEL_RVV_LANES;
        uaccel_depthwise_rvv_block(&block, windows, channel, output + channel);
        block.weights += block.lanes * block.depth;
        block.constants += 4 * block.lanes;
    }
}

/* Where the window of an output pixel is, as the `i`th of three; scratch: the shared list and three others, and a
 * pixel of zero points. */
UACCEL_KERNEL void uaccel_depthwise_rvv_window(const struct uaccel_depthwise_conv2d_rvv *p, uintptr_t input,
                                               uaccel_index y, uaccel_index x, uaccel_index i, uintptr_t *scratch,
                                               struct uaccel_depthwise_rvv_windows *windows)
{
    const uaccel_index taps = p->kernel_height * p->kernel_width;
    const uaccel_index top = y * p->stride_height - p->pad_top, left = x * p->stride_width - p->pad_left;
    const bool whole = top >= 0 && top + (p->kernel_height - 1) * p->dilation_height < p->in_height && left >= 0 &&
                       left + (p->kernel_width - 1) * p->dilation_width < p->in_width;
    if (whole) {
        windows->lists[i] = scratch;
        windows->from[i] = input + (uintptr_t)((top * p->in_width + left) * p->channels);
    } else {
        uintptr_t *const own = scratch + (1 + i) * taps;
        uaccel_depthwise_rvv_list(p, input, top, left, (uintptr_t)(scratch + 4 * taps), own);
        windows->lists[i] = own;
        windows->from[i] = 0;
    }
}

UACCEL_SHARED void uaccel_depthwise_conv2d_rvv_s8(const struct uaccel_depthwise_conv2d_rvv *p, const int8_t *input,
                                                  const int8_t *weights, const int32_t *constants, int8_t *output,
                                                  void *scratch)
{
    const uaccel_index taps = p->kernel_height * p->kernel_width, pixels = p->out_height * p->out_width;
    const struct uaccel_rvv_block block = {&p->finish, weights, constants, taps, p->channels, 0};
    uintptr_t *const lists = scratch;
    for (uaccel_index tap = 0; tap < taps; ++tap) {
        const uaccel_index down = tap / p->kernel_width * p->dilation_height;
        const uaccel_index right = tap % p->kernel_width * p->dilation_width;
        lists[tap] = (uintptr_t)((down * p->in_width + right) * p->channels);
    }
    (void)uaccel_rvv_fill((int8_t *)(lists + 4 * taps), p->input_zero_point, p->channels);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        struct uaccel_depthwise_rvv_windows windows;
        uaccel_index y = 0, x = 0;
        for (uaccel_index left = pixels; left > 0; left -= 3) {
            windows.count = left < 3 ? left : 3;
            for (uaccel_index i = 0; i < windows.count; ++i) {
                uaccel_depthwise_rvv_window(p, (uintptr_t)input, y, x, i, lists, &windows);
                if (++x == p->out_width) {
                    x = 0;
                    ++y;
                }
            }
            for (uaccel_index i = windows.count; i < 3; ++i) {
                windows.lists[i] = windows.lists[0];
                windows.from[i] = windows.from[0];
            }
            uaccel_depthwise_rvv_channels(block, &windows, output);
            output += windows.count * p->channels;
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#endif
