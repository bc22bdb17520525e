/* A function of one 16-bit variable, as polynomials of the third degree and tables, portable C. */
#ifndef UACCEL_LOOKUP16_H
#define UACCEL_LOOKUP16_H

#include "uaccel_fixedpoint.h"

struct uaccel_lookup16 {
    uaccel_index elements;
    int32_t bits;     /* of the places in a segment */
    int32_t fraction; /* bits after the point */
    int32_t clamp_min, clamp_max;
};

UACCEL_KERNEL int32_t uaccel_lookup16_step(int32_t factor, int32_t place, int32_t bits)
{
    return (int32_t)(((int64_t)factor * place) >> bits);
}

/* segments: of each the whole part and the fraction of its first result, and the factors of the place, its square and
 * its cube; or INT32_MIN in the place of the last, and the number of its first result in `stored`. */
UACCEL_KERNEL void uaccel_lookup16(const struct uaccel_lookup16 *p, const int16_t *input, const int32_t *segments,
                                   const int16_t *stored, int16_t *output)
{
    for (uaccel_index i = 0; i < p->elements; ++i) {
        const int32_t value = (int32_t)input[i] + 32768;
        const int32_t *const row = segments + (value >> p->bits) * 5;
        const int32_t place = value & ((INT32_C(1) << p->bits) - 1);
        if (row[4] == INT32_MIN) {
            output[i] = stored[row[0] + place];
            continue;
        }
        int32_t total = uaccel_lookup16_step(row[4], place, p->bits) + row[3];
        total = uaccel_lookup16_step(total, place, p->bits) + row[2];
        total = uaccel_lookup16_step(total, place, p->bits) + row[1];
        total = row[0] + ((total + (INT32_C(1) << (p->fraction - 1))) >> p->fraction);
        output[i] = (int16_t)uaccel_clamp(total, p->clamp_min, p->clamp_max);
    }
}

#endif
