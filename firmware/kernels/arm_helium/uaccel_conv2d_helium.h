/* Convolution for Arm Helium: NHWC, int8, one group, no dilation along rows.
 *
 * The input's columns under one row of windows are put down one after the other. Then each window is a run of bytes,
 * and neighbours share what they have in common. Windows of one pixel are read where they are, if whole vectors. */
#ifndef UACCEL_CONV2D_HELIUM_H
#define UACCEL_CONV2D_HELIUM_H

#include "uaccel_helium_windows.h"

struct uaccel_conv2d_helium {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, stride_height, dilation_height;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index out_pixel, out_row; /* bytes from one to the next */
    uaccel_index step;    /* bytes from window to window */
    uaccel_index length;  /* of a window, in whole vectors of 16 bytes */
    uaccel_index columns; /* bytes of a row's columns, and of a whole vector behind them; 0: none */
    uaccel_index direct;  /* so many rows of windows are read where they are; of the others there are columns */
    uaccel_index inside;  /* how many columns of the input there are among them */
    uaccel_index taken;   /* how many pixels are moved at once, 0: a pixel is more than a vector */
    uint8_t places[16];   /* where their bytes go */
    struct uaccel_helium_finish finish;
};

/* `count` times some bytes, which `step` bytes on go to the same places. Opaque, since assembly cannot say that it changes
 * predicates. */
UACCEL_LAYER __attribute__((unused)) void uaccel_conv2d_helium_deal(const int8_t *source, int8_t *target, uint8x16_t places,
                                             uaccel_index bytes, uaccel_index step, uaccel_index count)
{
    __asm__ volatile("dls lr, %2\n"
                     "vctp.8 %3\n"
                     "1: vpstt\n"
                     "vldrbt.u8 q0, [%0]\n"
                     "vstrbt.8 q0, [%1, %q5]\n"
                     "add %0, %3\n"
                     "add %1, %4\n"
                     "le lr, 1b\n"
                     : "+&r"(source), "+&r"(target)
                     : "r"(count), "r"(bytes), "r"(step), "w"(places)
                     : "lr", "q0", "memory", "cc");
}

/* Pixels of up to 16 bytes each to every column. */
UACCEL_KERNEL void uaccel_conv2d_helium_scatter(const struct uaccel_conv2d_helium *p, const int8_t *source,
                                                int8_t *target)
{
    const uint8x16_t places = vldrbq_u8(p->places);
    const uaccel_index times = p->inside / p->taken, bytes = p->taken * p->in_channels;
    const uaccel_index step = bytes * p->kernel_height, rest = (p->inside - times * p->taken) * p->in_channels;
    if (times > 0) {
        uaccel_conv2d_helium_deal(source, target, places, bytes, step, times);
    }
    if (rest > 0) {
        const mve_pred16_t some = vctp8q((uint32_t)rest);
        const uint8x16_t last = vldrbq_z_u8((const uint8_t *)source + times * bytes, some);
        vstrbq_scatter_offset_p_u8((uint8_t *)target + times * step, places, last, some);
    }
}

/* 16 bytes of each pixel to every column: one at least. */
UACCEL_KERNEL void uaccel_conv2d_helium_move(const int8_t *source, uaccel_index pixel, int8_t *target,
                                             uaccel_index pitch, uaccel_index count)
{
    __asm__ volatile("dls lr, %2\n"
                     "1: vldrb.u8 q0, [%0]\n"
                     "add %0, %3\n"
                     "vstrb.8 q0, [%1]\n"
                     "add %1, %4\n"
                     "le lr, 1b\n"
                     : "+l"(source), "+l"(target)
                     : "r"(count), "r"(pixel), "r"(pitch)
                     : "lr", "q0", "memory", "cc");
}

/* One row of the input into its place in every column. */
UACCEL_KERNEL void uaccel_conv2d_helium_spread(const struct uaccel_conv2d_helium *p, const int8_t *source,
                                               int8_t *target)
{
    const uaccel_index pitch = p->kernel_height * p->in_channels;
    if (p->in_channels % 16 == 0) {
        for (uaccel_index first = 0; first < p->in_channels; first += 16) {
            uaccel_conv2d_helium_move(source + first, p->in_channels, target + first, pitch, p->inside);
        }
    } else if (p->taken > 0) {
        uaccel_conv2d_helium_scatter(p, source, target);
    } else {
        for (uaccel_index x = 0; x < p->inside; ++x) {
            uaccel_helium_copy(target, source, p->in_channels);
            source += p->in_channels;
            target += pitch;
        }
    }
}

/* The columns under a row of windows. What lies beside the input is there already. */
UACCEL_KERNEL void uaccel_conv2d_helium_columns(const struct uaccel_conv2d_helium *p, const int8_t *input,
                                                uaccel_index top, int8_t *columns)
{
    const uaccel_index pitch = p->kernel_height * p->in_channels;
    columns += p->pad_left * pitch;
    for (uaccel_index ky = 0; ky < p->kernel_height; ++ky) {
        const uaccel_index y = top + ky * p->dilation_height;
        if (y >= 0 && y < p->in_height) {
            uaccel_conv2d_helium_spread(p, input + y * p->in_width * p->in_channels, columns);
        } else {
            for (uaccel_index x = 0; x < p->inside; ++x) {
                uaccel_helium_fill(columns + x * pitch, p->input_zero_point, p->in_channels);
            }
        }
        columns += p->in_channels;
    }
}

/* Every row of windows, by a loop of uaccel_helium_loop. */
UACCEL_SHARED void uaccel_conv2d_helium_rows(const struct uaccel_conv2d_helium *p, const int8_t *input,
                                             const int32_t *stream, int8_t *output, int8_t *columns,
                                             uaccel_helium_windows_loop *loop)
{
    struct uaccel_helium_windows job;
    uaccel_helium_begin(&job, &p->finish, p->length, p->out_channels);
    job.input_step = 2 * p->step;
    job.output_step = 2 * p->out_pixel;
    uaccel_helium_fill(columns, p->input_zero_point, p->columns);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const uaccel_index top = y * p->stride_height - p->pad_top;
            const int8_t *row = input + top * p->in_width * p->in_channels;
            if (y >= p->direct) {
                uaccel_conv2d_helium_columns(p, input, top, columns);
                row = columns;
            }
            uaccel_helium_row(&job, loop, stream, row, p->step, output, p->out_width, p->out_pixel);
            output += p->out_row;
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

/* scratch: a row's columns. */
UACCEL_KERNEL void uaccel_conv2d_helium_s8(const struct uaccel_conv2d_helium *p, const int8_t *input,
                                           const int32_t *stream, int8_t *output, void *scratch)
{
    uaccel_conv2d_helium_rows(p, input, stream, output, scratch, uaccel_helium_loop(&p->finish, p->length));
}

#endif
