/* Layers by the instructions of dot4. All functions return 0. */
#ifndef DOT4_H
#define DOT4_H

#include <stdint.h>

/* Convolutions, pointwise ones and fully connected layers (rows are a line of pixels): two pixels and four channels at a
 * time. weights: of each four channels and each four inputs a word for each of the channels. constants: of each four
 * channels biases, multipliers and shifts. layer: a struct dot4_layer as numbers. scratch: two windows of whole words. */
int32_t dot4_conv2d(const int8_t *input, const int32_t *weights, const int32_t *constants, const int32_t *layer,
                    int8_t *output, void *scratch);

/* Depthwise convolutions, as many channels as the input has, a multiple of four: four channels at a time. weights: of
 * each four channels and each tap one word. */
int32_t dot4_depthwise(const int8_t *input, const int32_t *weights, const int32_t *constants, const int32_t *layer,
                       int8_t *output, void *scratch);

#endif
