/* Depthwise convolution for Arm Helium: int8, any multiplier, windows of up to seven times 16 pixels.
 *
 * The output is cut into regions of one size, the last ones of which may begin amid their neighbours. Of up to 16
 * channels at a time the input under a region is put down as planes, borders and all, and then windows run over them
 * by eights, of which the last ones, again, may be some of those before. */
#ifndef UACCEL_DEPTHWISE_CONV2D_HELIUM_H
#define UACCEL_DEPTHWISE_CONV2D_HELIUM_H

#include "uaccel_helium_planes.h"

struct uaccel_depthwise_conv2d_helium {
    uaccel_index batch, in_height, in_width, channels;
    uaccel_index out_height, out_width;
    uaccel_index stride_height, stride_width;
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    uaccel_index region_height, region_width; /* of the output */
    uaccel_index rows, pitch;                 /* of a plane */
    uaccel_index tile_height, tile_width;     /* of eight windows */
    uaccel_index second;                      /* from the first four to the others, in a plane */
    uaccel_index loads;                       /* for four windows; 0: each is a run of bytes, read where it lies */
    uint16_t multiplier;                      /* output channels of an input channel */
    uint16_t part;                            /* where windows take several loads, from one to the next; of runs the last */
    uaccel_index count;                       /* how many times eight windows are in a region */
    uaccel_index channel_words;               /* of the stream */
    uint16_t results[8];
    uint8_t lanes[64];
    struct uaccel_helium_finish finish;
};

/* One row of whole sixteens of channels: `count` pixels, `pitch` bytes from one to the next. */
UACCEL_KERNEL void uaccel_depthwise_helium_deal(const int8_t *source, uaccel_index pitch, int8_t *target,
                                                uint16x8_t even, uint16x8_t odd, uaccel_index count)
{
    __asm__ volatile("dls lr, %2\n"
                     "1: vldrb.u8 q0, [%0]\n"
                     "add %0, %3\n"
                     "vstrb.16 q0, [%1, %q4]\n"
                     "vshr.u16 q0, q0, #8\n"
                     "vstrb.16 q0, [%1, %q5]\n"
                     "add %1, #1\n"
                     "le lr, 1b\n"
                     : "+r"(source), "+r"(target)
                     : "r"(count), "r"(pitch), "w"(even), "w"(odd)
                     : "lr", "q0", "memory", "cc");
}

/* One row of eight channels. */
UACCEL_KERNEL void uaccel_depthwise_helium_deal_eight(const int8_t *source, uaccel_index pitch, int8_t *target,
                                                      uint16x8_t places, uaccel_index count)
{
    __asm__ volatile("dls lr, %2\n"
                     "1: vldrb.u16 q0, [%0]\n"
                     "add %0, %3\n"
                     "vstrb.16 q0, [%1, %q4]\n"
                     "add %1, #1\n"
                     "le lr, 1b\n"
                     : "+l"(source), "+l"(target)
                     : "r"(count), "r"(pitch), "w"(places)
                     : "lr", "q0", "memory", "cc");
}

/* One row of some channels, fewer than 16. */
UACCEL_KERNEL void uaccel_depthwise_helium_deal_some(const int8_t *source, uaccel_index pitch, int8_t *target,
                                                     uint16x8_t even, uint16x8_t odd, uaccel_index count,
                                                     uaccel_index channels)
{
    const mve_pred16_t all = vctp8q((uint32_t)channels);
    const mve_pred16_t evens = vctp16q((uint32_t)(channels + 1) >> 1), odds = vctp16q((uint32_t)channels >> 1);
    for (; count > 0; --count) {
        const uint16x8_t pixel = vreinterpretq_u16_s8(vldrbq_z_s8(source, all));
        vstrbq_scatter_offset_p_u16((uint8_t *)target, even, pixel, evens);
        vstrbq_scatter_offset_p_u16((uint8_t *)target, odd, vshrq_n_u16(pixel, 8), odds);
        source += pitch;
        ++target;
    }
}

/* The planes under the region whose windows begin at `top` and `left`. */
UACCEL_SHARED void uaccel_depthwise_helium_planes(const struct uaccel_depthwise_conv2d_helium *p,
                                                  const int8_t *input, uaccel_index top, uaccel_index left,
                                                  uaccel_index channels, int8_t *planes)
{
    const uaccel_index plane = p->rows * p->pitch;
    const uaccel_index first = top < 0 ? -top : 0, skip = left < 0 ? -left : 0;
    const uaccel_index last = p->in_height - top < p->rows ? p->in_height - top : p->rows;
    const uaccel_index end = p->in_width - left < p->pitch ? p->in_width - left : p->pitch;
    const uint16x8_t even = vmulq_n_u16(vidupq_n_u16(0, 2), (uint16_t)plane);
    const uint16x8_t odd = vaddq_n_u16(even, (uint16_t)plane);
    if (first > 0 || skip > 0 || last < p->rows || end < p->pitch) {
        uaccel_helium_fill(planes, p->input_zero_point, plane * channels);
    }
    for (uaccel_index y = first; y < last && skip < end; ++y) {
        const int8_t *source = input + ((top + y) * p->in_width + left + skip) * p->channels;
        int8_t *target = planes + y * p->pitch + skip;
        if (channels == 16) {
            uaccel_depthwise_helium_deal(source, p->channels, target, even, odd, end - skip);
        } else if (channels == 8) {
            uaccel_depthwise_helium_deal_eight(source, p->channels, target, vshrq_n_u16(even, 1), end - skip);
        } else {
            uaccel_depthwise_helium_deal_some(source, p->channels, target, even, odd, end - skip, channels);
        }
    }
}

UACCEL_KERNEL uaccel_index uaccel_depthwise_helium_least(uaccel_index a, uaccel_index b)
{
    return a < b ? a : b;
}

/* Where the windows of a region are, by eights, and the first ones again. */
UACCEL_KERNEL void uaccel_depthwise_helium_places(const struct uaccel_depthwise_conv2d_helium *p,
                                                  struct uaccel_helium_place *places, uaccel_index results)
{
    const struct uaccel_helium_place *const first = places;
    for (uaccel_index row = 0; row < p->region_height; row += p->tile_height) {
        const uaccel_index y = uaccel_depthwise_helium_least(row, p->region_height - p->tile_height);
        for (uaccel_index column = 0; column < p->region_width; column += p->tile_width) {
            const uaccel_index x = uaccel_depthwise_helium_least(column, p->region_width - p->tile_width);
            places->first = y * p->stride_height * p->pitch + x * p->stride_width;
            places->second = places->first + p->second;
            places->result = (y * p->out_width + x) * results;
            ++places;
        }
    }
    *places = *first;
}

/* The region at y and x of one image, by groups of channels, of which each has `times` results. */
UACCEL_KERNEL void uaccel_depthwise_helium_region(const struct uaccel_depthwise_conv2d_helium *p,
                                                  struct uaccel_helium_planes *job, uaccel_helium_planes_loop *loop,
                                                  const int8_t *input, const int32_t *stream, int8_t *output,
                                                  uaccel_index y, uaccel_index x, int8_t *planes, uaccel_index times)
{
    output += (y * p->out_width + x) * p->channels * times;
    for (uaccel_index first = 0; first < p->channels; first += 16) {
        const uaccel_index channels = uaccel_depthwise_helium_least(16, p->channels - first);
        const uaccel_index at_once = times > 1 ? 1 : channels;
        uaccel_depthwise_helium_planes(p, input + first, y * p->stride_height - p->pad_top,
                                       x * p->stride_width - p->pad_left, channels, planes);
        for (uaccel_index channel = 0; channel < channels; channel += at_once) {
            job->plane = planes + channel * p->rows * p->pitch;
            job->output = output + (first + channel) * times;
            job->channels = at_once * times;
            loop(job, stream + (first + channel) * times * p->channel_words);
        }
    }
}

/* All of them: a plane at a time where it has several results. */
UACCEL_KERNEL void uaccel_depthwise_helium_whole(const struct uaccel_depthwise_conv2d_helium *p, const int8_t *input,
                                                 const int32_t *stream, int8_t *output, void *scratch,
                                                 uaccel_helium_planes_loop *loop, uaccel_index times)
{
    struct uaccel_helium_place *places = scratch;
    int8_t *planes = scratch;
    struct uaccel_helium_planes job;
    if (p->loads > 0) {
        planes = (int8_t *)(places + p->count + 1);
        uaccel_depthwise_helium_places(p, places, p->channels * times);
    }
    job.plane_bytes = times > 1 ? 0 : p->rows * p->pitch;
    job.part = p->part;
    job.places = places;
    job.count = p->count;
    job.zero_point = p->finish.zero_point;
    job.lowest = p->finish.lowest;
    job.highest = p->finish.highest;
    memcpy(job.results, p->results, sizeof job.results);
    memcpy(job.lanes, p->lanes, sizeof job.lanes);
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index row = 0; row < p->out_height; row += p->region_height) {
            const uaccel_index y = uaccel_depthwise_helium_least(row, p->out_height - p->region_height);
            for (uaccel_index column = 0; column < p->out_width; column += p->region_width) {
                const uaccel_index x = uaccel_depthwise_helium_least(column, p->out_width - p->region_width);
                uaccel_depthwise_helium_region(p, &job, loop, input, stream, output, y, x, planes, times);
            }
        }
        input += p->in_height * p->in_width * p->channels;
        output += p->out_height * p->out_width * p->channels * times;
    }
}

UACCEL_SHARED void uaccel_depthwise_helium_run(const struct uaccel_depthwise_conv2d_helium *p, const int8_t *input,
                                               const int32_t *stream, int8_t *output, void *scratch,
                                               uaccel_helium_planes_loop *loop)
{
    uaccel_depthwise_helium_whole(p, input, stream, output, scratch, loop, 1);
}

UACCEL_SHARED void uaccel_depthwise_helium_multiplied(const struct uaccel_depthwise_conv2d_helium *p,
                                                      const int8_t *input, const int32_t *stream, int8_t *output,
                                                      void *scratch, uaccel_helium_planes_loop *loop)
{
    uaccel_depthwise_helium_whole(p, input, stream, output, scratch, loop, p->multiplier);
}

/* scratch: the places of a region's windows, and its planes. */
UACCEL_KERNEL void uaccel_depthwise_conv2d_helium_s8(const struct uaccel_depthwise_conv2d_helium *p,
                                                     const int8_t *input, const int32_t *stream, int8_t *output,
                                                     void *scratch)
{
    uaccel_helium_planes_loop *loop = uaccel_helium_planes_of(&p->finish, p->loads);
    if (p->multiplier > 1) {
        uaccel_depthwise_helium_multiplied(p, input, stream, output, scratch, loop);
    } else {
        uaccel_depthwise_helium_run(p, input, stream, output, scratch, loop);
    }
}

#endif
