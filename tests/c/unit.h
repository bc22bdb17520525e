/* Checks for unit tests in C. A failed check says where, and the test goes on; main ends with UNIT_RESULT().
 *
 *   int main(void) {
 *       CHECK(isready());
 *       CHECK_EQ(add(2, 2), 4);
 *       return UNIT_RESULT();
 *   }
 */
#ifndef UACCEL_TESTS_UNIT_H
#define UACCEL_TESTS_UNIT_H

#include <stdio.h>

static int unit_failures = 0;

#define CHECK(condition) unit_check((condition) ? 1 : 0, #condition, __FILE__, __LINE__)

/* Integers of any type up to long long. */
#define CHECK_EQ(seen, wanted) unit_check_eq((long long)(seen), (long long)(wanted), #seen, __FILE__, __LINE__)

#define UNIT_RESULT() unit_result()

static inline void unit_check(int holds, const char* text, const char* file, int line) {
    if (!holds) {
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, text);
        unit_failures++;
    }
}

static inline void unit_check_eq(long long seen, long long wanted, const char* text, const char* file, int line) {
    if (seen != wanted) {
        fprintf(stderr, "%s:%d: failed: %s is %lld, wanted %lld\n", file, line, text, seen, wanted);
        unit_failures++;
    }
}

static inline int unit_result(void) {
    if (unit_failures > 0) {
        fprintf(stderr, "%d checks failed\n", unit_failures);
    }
    return unit_failures > 0 ? 1 : 0;
}

#endif
