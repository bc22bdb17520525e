/* Depthwise convolution for any CPU, four channels at a time.
 *
 * Of each output pixel the addresses of the pixels under its window are listed, and then four channels at a time run
 * over the list. What lies outside is a pixel of zero points. */
#ifndef UACCEL_DEPTHWISE_CONV2D_BLOCKED_H
#define UACCEL_DEPTHWISE_CONV2D_BLOCKED_H

#include "uaccel_blocked.h"

struct uaccel_depthwise_conv2d_blocked {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_blocked_finish finish;
};

/* The same with several results of a channel, which lie side by side. */
struct uaccel_depthwise_times_blocked {
    struct uaccel_depthwise_conv2d_blocked windows;
    uaccel_index out_channels, multiplier;
};

#define UACCEL_BODY "uaccel_depthwise_conv2d_blocked_body.h"
#include "uaccel_roundings.h"

#endif
