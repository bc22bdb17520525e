/* Elementwise operators of two inputs with broadcasting for Arm Helium, eight elements at a time.
 *
 * The including header says what is computed, then includes this file, which forgets it again:
 *
 *   UACCEL_BINARY          the kernel's name
 *   UACCEL_BINARY_STRUCT   that of its structure, which holds the loops as those of uaccel_binary.h
 *   UACCEL_BINARY_BITS     of an element: 8 or 16
 *   UACCEL_BINARY_COMBINE  the output elements, in range: int16x8_t (p, int16x8_t, int16x8_t); of bytes the low halves
 *
 * An output may be an input of its size. */

#include "uaccel_helium.h"

#if UACCEL_BINARY_BITS == 8
#define UACCEL_BINARY_ELEMENT int8_t
#define UACCEL_BINARY_LOAD vldrbq_z_s16
#define UACCEL_BINARY_STORE vstrbq_p_s16
#define UACCEL_BINARY_LOAD8 vldrbq_s16
#define UACCEL_BINARY_STORE8 vstrbq_s16
#else
#define UACCEL_BINARY_ELEMENT int16_t
#define UACCEL_BINARY_LOAD vldrhq_z_s16
#define UACCEL_BINARY_STORE vstrhq_p_s16
#define UACCEL_BINARY_LOAD8 vldrhq_s16
#define UACCEL_BINARY_STORE8 vstrhq_s16
#endif
#define UACCEL_LOOP(i, level) for (uaccel_index i = 0; i < p->extents[level]; ++i)

UACCEL_KERNEL void UACCEL_BINARY(const struct UACCEL_BINARY_STRUCT *p, const UACCEL_BINARY_ELEMENT *input1,
                                 const UACCEL_BINARY_ELEMENT *input2, UACCEL_BINARY_ELEMENT *output)
{
    const uaccel_index *s1 = p->strides1, *s2 = p->strides2;
    UACCEL_LOOP(a, 0) UACCEL_LOOP(b, 1) UACCEL_LOOP(c, 2) UACCEL_LOOP(d, 3) UACCEL_LOOP(e, 4) {
        const UACCEL_BINARY_ELEMENT *row1 = input1 + (a * s1[0] + b * s1[1] + c * s1[2] + d * s1[3] + e * s1[4]);
        const UACCEL_BINARY_ELEMENT *row2 = input2 + (a * s2[0] + b * s2[1] + c * s2[2] + d * s2[3] + e * s2[4]);
        /* what is repeated along the row is in every lane */
        int16x8_t x = vdupq_n_s16(*row1), y = vdupq_n_s16(*row2);
        uaccel_index left = p->extents[5];
        for (; left >= 8; left -= 8) {
            if (s1[5] != 0) {
                x = UACCEL_BINARY_LOAD8(row1);
                row1 += 8;
            }
            if (s2[5] != 0) {
                y = UACCEL_BINARY_LOAD8(row2);
                row2 += 8;
            }
            UACCEL_BINARY_STORE8(output, UACCEL_BINARY_COMBINE(p, x, y));
            output += 8;
        }
        if (left > 0) {
            const mve_pred16_t some = vctp16q((uint32_t)left);
            x = s1[5] != 0 ? UACCEL_BINARY_LOAD(row1, some) : x;
            y = s2[5] != 0 ? UACCEL_BINARY_LOAD(row2, some) : y;
            UACCEL_BINARY_STORE(output, UACCEL_BINARY_COMBINE(p, x, y), some);
            output += left;
        }
    }
}

#undef UACCEL_BINARY
#undef UACCEL_BINARY_STRUCT
#undef UACCEL_BINARY_BITS
#undef UACCEL_BINARY_COMBINE
#undef UACCEL_BINARY_ELEMENT
#undef UACCEL_BINARY_LOAD
#undef UACCEL_BINARY_STORE
#undef UACCEL_BINARY_LOAD8
#undef UACCEL_BINARY_STORE8
#undef UACCEL_LOOP
