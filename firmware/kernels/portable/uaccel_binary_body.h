/* An elementwise operator of two inputs, for one element type; included by uaccel_binary.h. */

#define UACCEL_TYPED(name) UACCEL_FN(name)
#ifdef UACCEL_SECOND_TYPE
#define UACCEL_ELEMENT2 UACCEL_SECOND_TYPE
#else
#define UACCEL_ELEMENT2 UACCEL_ELEMENT
#endif
#ifndef UACCEL_RESULT
#define UACCEL_RESULT UACCEL_ELEMENT
#endif
#define UACCEL_LOOP(i, level) for (uaccel_index i = 0; i < p->extents[level]; ++i)

UACCEL_KERNEL void UACCEL_TYPED(UACCEL_BINARY)(const struct UACCEL_BINARY *p, const UACCEL_ELEMENT *input1,
                                               const UACCEL_ELEMENT2 *input2, UACCEL_RESULT *output)
{
    const uaccel_index *s1 = p->strides1, *s2 = p->strides2;
    UACCEL_LOOP(a, 0) UACCEL_LOOP(b, 1) UACCEL_LOOP(c, 2) UACCEL_LOOP(d, 3) UACCEL_LOOP(e, 4) {
        const UACCEL_ELEMENT *row1 = input1 + (a * s1[0] + b * s1[1] + c * s1[2] + d * s1[3] + e * s1[4]);
        const UACCEL_ELEMENT2 *row2 = input2 + (a * s2[0] + b * s2[1] + c * s2[2] + d * s2[3] + e * s2[4]);
        /* what is repeated along the row is prepared once */
        int32_t x = UACCEL_FIRST(p, *row1);
        int32_t y = UACCEL_SECOND(p, *row2);
        UACCEL_LOOP(i, 5) {
            x = s1[5] != 0 ? UACCEL_FIRST(p, row1[i]) : x;
            y = s2[5] != 0 ? UACCEL_SECOND(p, row2[i]) : y;
            *output++ = (UACCEL_RESULT)UACCEL_COMBINE(p, x, y);
        }
    }
}

#undef UACCEL_TYPED
#undef UACCEL_ELEMENT2
#undef UACCEL_LOOP
