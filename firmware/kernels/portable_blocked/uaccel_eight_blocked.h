/* Eight sums at once, in a to h. */
#ifndef UACCEL_EIGHT_BLOCKED_H
#define UACCEL_EIGHT_BLOCKED_H

/* What a value adds to each; weight(i): the i-th of eight weights. */
#define UACCEL_EIGHT_PRODUCTS(value, weight) \
    do {                                     \
        a += (value) * weight(0);            \
        b += (value) * weight(1);            \
        c += (value) * weight(2);            \
        d += (value) * weight(3);            \
        e += (value) * weight(4);            \
        f += (value) * weight(5);            \
        g += (value) * weight(6);            \
        h += (value) * weight(7);            \
    } while (0)
#define UACCEL_EIGHT_STORE(to) \
    do {                       \
        (to)[0] = a;           \
        (to)[1] = b;           \
        (to)[2] = c;           \
        (to)[3] = d;           \
        (to)[4] = e;           \
        (to)[5] = f;           \
        (to)[6] = g;           \
        (to)[7] = h;           \
    } while (0)

#endif
