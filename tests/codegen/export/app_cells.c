/* Two cells of one export in turn, each with frames of its own from stdin; sends what both give. */
#include <stdio.h>

#include "tvmgen_cells.h"

int main(void)
{
    static float x[3], y[2], z[2] = {1.0f, 1.0f};
    struct tvmgen_one_inputs first = {x, z};
    struct tvmgen_one_outputs of_first = {y};
    struct tvmgen_two_inputs second = {x, z};
    struct tvmgen_two_outputs of_second = {y};
    while (fread(x, sizeof x, 1, stdin) == 1) {
        if (tvmgen_one_run(&first, &of_first) != 0 || fwrite(y, sizeof y, 1, stdout) != 1) {
            return 1;
        }
        if (fread(x, sizeof x, 1, stdin) != 1 || tvmgen_two_run(&second, &of_second) != 0 ||
            fwrite(y, sizeof y, 1, stdout) != 1) {
            return 1;
        }
    }
    return 0;
}
