/* Logistic and tanh of 16-bit activations, portable C: a table of 256 points with straight lines between them.
 *
 * The table holds the logistic function for arguments from zero; what follows from it for the other half and for
 * tanh is in the constants. */
#ifndef UACCEL_SIGMOID16_H
#define UACCEL_SIGMOID16_H

#include "uaccel_kernel.h"

struct uaccel_sigmoid16 {
    uaccel_index elements;
    int32_t multiplier, right_shift; /* from the input to the table's argument; multiplier at most 32767 */
    int32_t fraction_bits;           /* of the argument between two points */
    int32_t saturated;               /* the interpolated value beyond the last point */
    int32_t origin, mirror, shift;   /* from the interpolated value to the output */
};

UACCEL_KERNEL void uaccel_sigmoid16(const struct uaccel_sigmoid16 *p, const int16_t *input, const uint16_t *points,
                                    int16_t *output)
{
    const int32_t rounding = p->right_shift > 0 ? INT32_C(1) << (p->right_shift - 1) : 0;
    for (uaccel_index i = 0; i < p->elements; ++i) {
        const int32_t scaled = (input[i] * p->multiplier + rounding) >> p->right_shift;
        const int32_t magnitude = scaled < 0 ? -scaled : scaled;
        const int32_t segment = magnitude >> p->fraction_bits;
        const int32_t rest = magnitude & ((INT32_C(1) << p->fraction_bits) - 1);
        int32_t value = p->saturated;
        if (segment < 255) {
            const int32_t low = points[segment], high = points[segment + 1];
            value = (low << p->fraction_bits) + rest * (high - low);
        }
        value = scaled >= 0 ? value - p->origin : p->mirror - 1 - value;
        output[i] = (int16_t)((value + (INT32_C(1) << (p->shift - 1))) >> p->shift);
    }
}

#endif
