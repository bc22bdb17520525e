/* Convolution of floats, four output channels of up to four pixels at a time: NHWC.
 *
 * Included once for each way to add up products: UACCEL_FLOAT_SUMS4 of four rows, UACCEL_FLOAT_SUMS1 of one. The
 * weights lie as UACCEL_FLOAT_WEIGHT. */

/* The results of four channels, or fewer where a group ends, of the pixel whose results begin at `output`. */
UACCEL_KERNEL void UACCEL_FN(uaccel_conv2d_float_store)(const struct uaccel_conv2d_float *p, const float *sums,
                                                        const float *bias, const float *added, float *output,
                                                        uaccel_index count)
{
    for (uaccel_index c = 0; c < count; ++c) {
        float value = sums[c] + bias[c];
        UACCEL_FLOAT_ALONE(value);
        if (p->adds) {
            value += added[c];
        }
        output[c] = uaccel_float_finish(&p->finish, value);
    }
}

/* A group's channels of `pixels` pixels, one or four, whose windows lie at `rows`. */
UACCEL_KERNEL void UACCEL_FN(uaccel_conv2d_float_pixels)(const struct uaccel_conv2d_float *p, uaccel_index pixels,
                                                         const float *rows, const UACCEL_FLOAT_WEIGHT *weights,
                                                         const float *bias, const float *added, float *output)
{
    const uaccel_index group = p->geo.out_channels / p->groups;
    for (uaccel_index c = 0; c < group; c += 4) {
        const uaccel_index count = group - c < 4 ? group - c : 4;
        float sums[16];
        if (pixels == 4) {
            UACCEL_FLOAT_SUMS4(rows, weights, p->depth, sums);
        } else {
            UACCEL_FLOAT_SUMS1(rows, weights, p->depth, sums);
        }
        for (uaccel_index pixel = 0; pixel < pixels; ++pixel) {
            const uaccel_index at = pixel * p->geo.out_channels + c;
            UACCEL_FN(uaccel_conv2d_float_store)(p, sums + 4 * pixel, bias + c, added + at, output + at, count);
        }
        weights += p->depth * 4;
    }
}

/* `added` has the shape of the output, and is not read unless `adds` says so. `windows` holds four windows of a group
 * where there is more than a pixel in each. */
UACCEL_KERNEL void UACCEL_FN(uaccel_conv2d_float)(const struct uaccel_conv2d_float *p, const float *input,
                                                  const UACCEL_FLOAT_WEIGHT *weights, const float *bias,
                                                  const float *added, float *output, float *windows)
{
    const uaccel_index pixels = p->geo.out_height * p->geo.out_width, group = p->geo.out_channels / p->groups;
    const uaccel_index of_group = (group + 3) / 4 * 4 * p->depth;
    for (uaccel_index n = 0; n < p->geo.batch; ++n) {
        for (uaccel_index pixel = 0; pixel < pixels;) {
            const uaccel_index count = pixels - pixel < 4 ? 1 : 4;
            for (uaccel_index g = 0; g < p->groups; ++g) {
                const float *rows = input + pixel * p->depth;
                if (p->copies) {
                    for (uaccel_index i = 0; i < count; ++i) {
                        uaccel_conv2d_float_window(p, input, pixel + i, g, windows + i * p->depth);
                    }
                    rows = windows;
                }
                UACCEL_FN(uaccel_conv2d_float_pixels)
                (p, count, rows, weights + g * of_group, bias + g * group, added + g * group, output + g * group);
            }
            output += count * p->geo.out_channels;
            added += p->adds ? count * p->geo.out_channels : 0;
            pixel += count;
        }
        input += p->geo.in_height * p->geo.in_width * p->geo.in_channels;
    }
}

#undef UACCEL_FN
#undef UACCEL_FLOAT_WEIGHT
#undef UACCEL_FLOAT_SUMS1
#undef UACCEL_FLOAT_SUMS4
