/* Resizing to the nearest pixel, NHWC, any element type, portable C. */
#ifndef UACCEL_RESIZE_NEAREST_H
#define UACCEL_RESIZE_NEAREST_H

#include "uaccel_kernel.h"

struct uaccel_resize_nearest {
    uaccel_index batch, in_height, in_width;
    uaccel_index out_height, out_width;
    uaccel_index pixel_bytes; /* channels * bytes of an element */
};

/* rows[y], columns[x]: which input pixel an output pixel shows. */
UACCEL_KERNEL void uaccel_resize_nearest(const struct uaccel_resize_nearest *p, const void *input,
                                         const int16_t *rows, const int16_t *columns, void *output)
{
    const uint8_t *image = input;
    uint8_t *pixel = output;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const uint8_t *row = image + rows[y] * p->in_width * p->pixel_bytes;
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                memcpy(pixel, row + columns[x] * p->pixel_bytes, (size_t)p->pixel_bytes);
                pixel += p->pixel_bytes;
            }
        }
        image += p->in_height * p->in_width * p->pixel_bytes;
    }
}

#endif
