/* Leading zeros as they are counted where no instruction is known for it. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "unit.h"

#undef __SIZEOF_INT__
#undef __SIZEOF_LONG__
#include "uaccel_fixedpoint.h"

int main(void)
{
    CHECK_EQ(uaccel_leading_zeros(0), 32);
    for (int32_t bit = 0; bit < 32; ++bit) {
        CHECK_EQ(uaccel_leading_zeros(UINT32_C(1) << bit), 31 - bit);
        CHECK_EQ(uaccel_leading_zeros(UINT32_MAX >> (31 - bit)), 31 - bit);
    }
    return UNIT_RESULT();
}
