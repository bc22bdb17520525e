/* Convolution for Arm Helium whose windows lie apart: int8, groups, dilation along rows.
 *
 * Of one group at a time the input's columns under a row of windows are put down as in uaccel_conv2d_helium.h. With
 * dilation d each d-th column is next to the one before: in d phases, each of which holds whole windows. */
#ifndef UACCEL_CONV2D_APART_HELIUM_H
#define UACCEL_CONV2D_APART_HELIUM_H

#include "uaccel_helium_windows.h"

struct uaccel_conv2d_apart_helium {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index groups;
    uaccel_index group_words; /* of the stream */
    uaccel_index phase;       /* columns of one */
    uaccel_index phases;      /* in which windows begin: each so many-th window of a row is in the same one */
    uaccel_index step;        /* bytes from window to window of a phase */
    uaccel_index length;      /* of a window, in whole vectors of 16 bytes */
    uaccel_index columns;     /* bytes of all phases, and of a whole vector behind them */
    struct uaccel_helium_finish finish;
};

/* One row of the input, or NULL beside it, into its place in every column. */
UACCEL_KERNEL void uaccel_conv2d_apart_helium_spread(const struct uaccel_conv2d_apart_helium *p, const int8_t *row,
                                                     int8_t *columns, uaccel_index depth)
{
    const uaccel_index pitch = p->kernel_height * depth;
    for (uaccel_index phase = 0; phase < p->dilation_width; ++phase) {
        const uaccel_index skipped = (p->pad_left - phase + p->dilation_width - 1) / p->dilation_width;
        int8_t *target = columns + (phase * p->phase + skipped) * pitch;
        uaccel_index x = skipped * p->dilation_width + phase - p->pad_left;
        for (uaccel_index q = skipped; q < p->phase && x < p->in_width; ++q) {
            if (row != NULL) {
                uaccel_helium_copy(target, row + x * p->in_channels, depth);
            } else {
                uaccel_helium_fill(target, p->input_zero_point, depth);
            }
            target += pitch;
            x += p->dilation_width;
        }
    }
}

/* One row of windows of one group. */
UACCEL_KERNEL void uaccel_conv2d_apart_helium_row(const struct uaccel_conv2d_apart_helium *p,
                                                  struct uaccel_helium_windows *job, uaccel_helium_windows_loop *loop,
                                                  const int32_t *stream, const int8_t *columns, int8_t *output,
                                                  uaccel_index pitch)
{
    const uaccel_index d = p->dilation_width, all = p->phases * p->out_channels;
    for (uaccel_index first = 0; first < p->phases && first < p->out_width; first += 2) {
        const uaccel_index second = first + 1, at = first * p->stride_width, other = second * p->stride_width;
        const int8_t *begin = columns + (at % d * p->phase + at / d) * pitch;
        const uaccel_index count = (p->out_width - first - 1) / p->phases + 1;
        if (second < p->phases) { /* a pair is a window of each */
            const uaccel_index more = p->out_width > second ? (p->out_width - second - 1) / p->phases + 1 : 0;
            const int8_t *next = columns + (other % d * p->phase + other / d) * pitch;
            job->input_step = p->step;
            job->output_step = all;
            uaccel_helium_row(job, loop, stream, begin, next - begin, output, count + more, p->out_channels);
        } else {
            job->input_step = 2 * p->step;
            job->output_step = 2 * all;
            uaccel_helium_row(job, loop, stream, begin, p->step, output, count, all);
        }
        output += 2 * p->out_channels;
    }
}

/* Every row of windows, by a loop of uaccel_helium_loop. */
UACCEL_SHARED void uaccel_conv2d_apart_helium_rows(const struct uaccel_conv2d_apart_helium *p, const int8_t *input,
                                                   const int32_t *stream, int8_t *output, int8_t *columns,
                                                   uaccel_helium_windows_loop *loop)
{
    const uaccel_index depth = p->in_channels / p->groups, channels = p->out_channels / p->groups;
    struct uaccel_helium_windows job;
    uaccel_helium_begin(&job, &p->finish, p->length, channels);
    uaccel_helium_fill(columns, p->input_zero_point, p->columns);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index group = 0; group < p->groups; ++group) {
                for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
                    const uaccel_index at = y * p->stride_height - p->pad_top + ky * p->dilation_height;
                    const int8_t *row = at >= 0 && at < p->in_height
                                            ? input + at * p->in_width * p->in_channels + group * depth
                                            : NULL;
                    uaccel_conv2d_apart_helium_spread(p, row, columns + ky * depth, depth);
                }
                uaccel_conv2d_apart_helium_row(p, &job, loop, stream + group * p->group_words, columns,
                                               output + group * channels, p->kernel_height * depth);
            }
            output += p->out_width * p->out_channels;
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

/* scratch: the columns under a row of windows. */
UACCEL_KERNEL void uaccel_conv2d_apart_helium_s8(const struct uaccel_conv2d_apart_helium *p, const int8_t *input,
                                                 const int32_t *stream, int8_t *output, void *scratch)
{
    uaccel_conv2d_apart_helium_rows(p, input, stream, output, scratch, uaccel_helium_loop(&p->finish, p->length));
}

#endif
