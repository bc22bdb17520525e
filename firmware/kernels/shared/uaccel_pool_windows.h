/* The windows of a pool, one after the other.
 *
 * The including header says what is done with them, then includes this file, which forgets it again:
 *
 *   UACCEL_POOL          the kernel's name
 *   UACCEL_POOL_ELEMENT  the type of its elements
 *   UACCEL_POOL_WINDOW   gives every channel of one window: void (p, pixels, height, width, output), of which `pixels`
 *                        is the first of height * width, none of them padding, in rows of p->in_width */

#include "uaccel_pool.h"

UACCEL_KERNEL void UACCEL_POOL(const struct uaccel_pool *p, const UACCEL_POOL_ELEMENT *input,
                               UACCEL_POOL_ELEMENT *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const struct uaccel_pool_span rows =
                uaccel_pool_span(y * p->stride_height - p->pad_top, p->window_height, p->in_height);
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_pool_span columns =
                    uaccel_pool_span(x * p->stride_width - p->pad_left, p->window_width, p->in_width);
                UACCEL_POOL_WINDOW(p, input + (rows.first * p->in_width + columns.first) * p->channels,
                                   rows.last - rows.first, columns.last - columns.first, output);
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->channels;
    }
}

#undef UACCEL_POOL
#undef UACCEL_POOL_ELEMENT
#undef UACCEL_POOL_WINDOW
