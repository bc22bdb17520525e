/* Results are the same wherever the input lies. */
#include <stdio.h>
#include <string.h>

#include "dot4.h"

enum { SIDE = 3, CHANNELS = 4, SIZE = SIDE * SIDE * CHANNELS };

static int8_t memory[SIZE + 4] __attribute__((aligned(4)));

int main(void)
{
    const int32_t pointwise[] = {1, SIDE, SIDE, CHANNELS, SIDE, SIDE, CHANNELS, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, -128, 127};
    const int32_t window[] = {1, SIDE, SIDE, CHANNELS, SIDE, SIDE, CHANNELS, 3, 3, 1, 1, 1, 1, 1, 1, 0, 0, -128, 127};
    const int32_t constants[12] = {1, 2, 3, 4, 1 << 30, 1 << 30, 1 << 30, 1 << 30, -2, -2, -2, -2};
    int32_t weights[9], scratch[2];
    int8_t results[4][2][SIZE];
    for (int i = 0; i < 9; ++i) {
        weights[i] = 0x01020304 * (i % 3 + 1);
    }
    for (int at = 0; at < 4; ++at) {
        for (int i = 0; i < SIZE; ++i) {
            memory[at + i] = (int8_t)(i * 7 - 100);
        }
        (void)dot4_conv2d(memory + at, weights, constants, pointwise, results[at][0], scratch);
        (void)dot4_depthwise(memory + at, weights, constants, window, results[at][1], scratch);
        if (memcmp(results[at], results[0], sizeof results[0]) != 0) {
            printf("other results at %d\n", at);
        }
    }
    printf("%d %d\n", results[0][0][0], results[0][1][0]);
    return 0;
}
