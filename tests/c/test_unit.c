/* The checks themselves: what holds passes in silence, what does not is counted and makes the test fail. */
#include "unit.h"

#include <limits.h>

int main(void) {
    CHECK(1 + 1 == 2);
    CHECK_EQ(INT_MIN, -INT_MAX - 1);
    if (unit_failures != 0 || UNIT_RESULT() != 0) {
        fprintf(stderr, "a check that holds was counted as a failure\n");
        return 1;
    }

    fprintf(stderr, "two failures are wanted here:\n");
    CHECK(1 + 1 == 3);
    CHECK_EQ(INT_MAX, INT_MIN);
    if (unit_failures != 2 || UNIT_RESULT() != 1) {
        fprintf(stderr, "a check that does not hold was not counted\n");
        return 1;
    }
    return 0;
}
