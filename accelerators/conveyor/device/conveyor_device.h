/* The parts of conveyor's model. */
#ifndef CONVEYOR_DEVICE_H
#define CONVEYOR_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "uaccel_device.h"

enum {
    CONVEYOR_PLACES = 64,
    CONVEYOR_RECORD_WORDS = 32,
    CONVEYOR_ROW_BYTES = 65536,
    CONVEYOR_FILTER_BYTES = 65536,
    CONVEYOR_CHANNELS = 256 /* output channels that are computed together */
};

/* What the error register says. */
enum conveyor_error {
    CONVEYOR_GOOD,
    CONVEYOR_BAD_STREAM,
    CONVEYOR_BAD_OPERATION,
    CONVEYOR_BAD_PLACE,
    CONVEYOR_BAD_SHAPE,
    CONVEYOR_BAD_QUANTISATION,
    CONVEYOR_BAD_BUS,
    CONVEYOR_BROKEN /* a fault that was asked for */
};

enum conveyor_kind { CONVEYOR_CONSTANTS, CONVEYOR_INPUT, CONVEYOR_OUTPUT, CONVEYOR_SCRATCH, CONVEYOR_KINDS };

struct conveyor_place {
    uint32_t kind, bytes, base; /* base 0: not told */
};

struct conveyor_channel {
    int32_t bias, multiplier, shift;
};

struct conveyor {
    const struct uaccel_bus *bus;
    uint64_t cycles;
    uint32_t command, stream, stream_bytes, place_count;
    struct conveyor_place places[CONVEYOR_PLACES];
    uint32_t record[CONVEYOR_RECORD_WORDS];
    struct conveyor_channel channels[CONVEYOR_CHANNELS];
    int8_t rows[CONVEYOR_ROW_BYTES];
    int8_t filters[CONVEYOR_FILTER_BYTES]; /* a row of the output where there are no filters */
};

/* A tensor that lies in its place: checked once, before the command starts. */
struct conveyor_tensor {
    uint32_t address;
};

/* Field `number` of the record. */
int32_t conveyor_field(const struct conveyor *c, uint32_t number);

/* Whether the record holds nothing beyond so many tensors and so many fields. */
bool conveyor_rest_is_zero(const struct conveyor *c, uint32_t tensors, uint32_t count);

/* Tensor `number` of the record: GOOD where all its bytes lie in a place that can be read, or written. */
enum conveyor_error conveyor_find(const struct conveyor *c, uint32_t number, uint64_t bytes, bool write,
                                  struct conveyor_tensor *tensor);

enum conveyor_error conveyor_load(const struct conveyor *c, struct conveyor_tensor from, uint64_t offset, void *to,
                                  uint32_t bytes);
enum conveyor_error conveyor_store(const struct conveyor *c, struct conveyor_tensor to, uint64_t offset,
                                   const void *from, uint32_t bytes);

/* A little-endian word. */
uint32_t conveyor_word(const uint8_t *bytes);

/* Count a command's cycles: `work` steps, `rate` of them at once, and `moved` bytes over the bus. */
void conveyor_count(struct conveyor *c, uint64_t work, uint32_t rate, uint64_t moved);

/* What conveyor_scaled and conveyor_clamped can be given. */
bool conveyor_is_scale(int32_t multiplier, int32_t shift);
bool conveyor_is_range(int32_t low, int32_t high);
bool conveyor_is_int8(int32_t value);

/* value * multiplier / 2^31 * 2^shift, rounded as TensorFlow Lite's reference does it. */
int32_t conveyor_scaled(int32_t value, int32_t multiplier, int32_t shift);
/* A number modulo 2^32 as a signed one. */
int32_t conveyor_wrapped(uint32_t value);
int8_t conveyor_clamped(int64_t value, int32_t low, int32_t high);

/* What convolutions and pooling have in common: fields 0 to 12, and bytes of both tensors. */
struct conveyor_window {
    int32_t batch, in_height, in_width, in_channels;
    int32_t out_height, out_width, out_channels;
    int32_t kernel_height, kernel_width;
    int32_t stride_height, stride_width;
    int32_t pad_top, pad_left;
    uint64_t in_bytes, out_bytes;
};

enum { CONVEYOR_WINDOW_FIELDS = 13 };

enum conveyor_error conveyor_window(const struct conveyor *c, struct conveyor_window *window);
/* Kernels, strides, dilations and padding: up to 255. */
bool conveyor_is_window_number(int32_t value, int32_t least);

/* The operations: each checks everything of the record that was fetched, and then runs. */
enum conveyor_error conveyor_convolve(struct conveyor *c);
enum conveyor_error conveyor_add(struct conveyor *c);
enum conveyor_error conveyor_pool(struct conveyor *c, bool average);

#endif
