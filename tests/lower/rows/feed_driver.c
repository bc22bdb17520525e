/* Hands rows over in pieces of all sizes, runs, and writes the outputs; says what the functions return. */
#include <stdio.h>
#include <stdlib.h>

#include "feed_under_test.h"

static uint8_t *read_all(size_t bytes)
{
    uint8_t *const at = malloc(bytes);
    if (fread(at, 1, bytes, stdin) != bytes) {
        exit(2);
    }
    return at;
}

static void expect(int32_t got, int32_t wanted, int where)
{
    if (got != wanted) {
        fprintf(stderr, "%d: returned %d, expected %d\n", where, (int)got, (int)wanted);
        exit(3);
    }
}

static void hand_over(uint8_t *image, size_t piece)
{
    for (size_t row = 0; row < ROWS;) {
        const size_t count = piece < ROWS - row ? piece : ROWS - row;
        expect(FEED(image + row * ROW_SIZE, count), 0, 1);
        row += count;
        piece = piece % 5 + 1;
    }
}

int main(void)
{
    for (size_t run = 0; run < RUNS; ++run) {
        uint8_t *const image = read_all(ROWS * ROW_SIZE);
        expect(RUN(), MISSING, 2);
        expect(FEED(image, 1), 0, 3);
        expect(RUN(), MISSING, 4);
        expect(FEED(image, ROWS), TOO_MANY, 5);
        expect(FEED(NULL, 0), 0, 6); /* begins anew */
        hand_over(image, run == 0 ? ROWS : run);
        expect(FEED(image, 1), TOO_MANY, 7);
        expect(RUN(), 0, 8);
        expect(RUN(), MISSING, 9);
        write_outputs();
        free(image);
    }
    return 0;
}
