/* The driver of matrix8: its intrinsics, which generated code calls, and microTVM's device hooks.
 *
 * Intrinsics put commands into the device's queues and return at once. The first that fails makes all after it do
 * nothing; matrix8_finish tells. Offsets into on-chip memory and pitches are bytes. */
#ifndef MATRIX8_H
#define MATRIX8_H

#include <stdint.h>

enum matrix8_memory { MATRIX8_ACTIVATIONS, MATRIX8_WEIGHTS, MATRIX8_ACCUMULATORS, MATRIX8_PARAMETERS };

/* 0, or a code of uaccel_accelerator.h. */
int32_t TVMDeviceMatrix8Activate(void *device);
int32_t TVMDeviceMatrix8Open(void *device);
int32_t TVMDeviceMatrix8Close(void *device);
int32_t TVMDeviceMatrix8Deactivate(void *device);

/* Commands follow: errors of earlier ones are forgotten. */
void matrix8_begin(void);

/* The device will read or write this memory. */
void matrix8_share(const void *memory, int32_t bytes);

/* How stores from now on end: sums are scaled, the zero point is added, the result is clamped. `single`: scaled as
 * single precision rounds, and not as TFLite does. */
void matrix8_output(int32_t zero_point, int32_t clamp_min, int32_t clamp_max, int32_t single);

/* What multiplications from now on read for one output pixel: kernel_rows x kernel_columns runs of `run` bytes, and
 * how far apart those are, and those of the next pixel in the row, and of the next row. */
void matrix8_window(int32_t kernel_rows, int32_t kernel_columns, int32_t run, int32_t kernel_row_pitch,
                    int32_t kernel_column_pitch, int32_t row_pitch, int32_t column_pitch);

/* Bytes of an on-chip memory get one value. */
void matrix8_fill(enum matrix8_memory memory, int32_t offset, int32_t bytes, int32_t value);

/* `rows` times `bytes`, `stride` apart from `at` of `from` on, to on-chip memory, `pitch` apart. */
void matrix8_load(enum matrix8_memory memory, int32_t offset, int32_t pitch, const void *from, int32_t at,
                  int32_t stride, int32_t rows, int32_t bytes);

/* The sums of rows x columns pixels and 8 x blocks channels; `add`: onto what the accumulators hold. */
void matrix8_multiply(int32_t accumulators, int32_t activations, int32_t weights, int32_t rows, int32_t columns,
                      int32_t blocks, int32_t add);

/* Sums of pixels through the output stage to memory, pixels `stride` apart from `at` of `to` on. */
void matrix8_store(void *to, int32_t at, int32_t stride, int32_t accumulators, int32_t parameters, int32_t pixels,
                   int32_t channels);

/* Waits until all is done; `memory` is what was written. 0, or a code of uaccel_accelerator.h. */
int32_t matrix8_finish(void *memory, int32_t bytes);

#endif
