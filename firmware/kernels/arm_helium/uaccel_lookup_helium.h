/* A function of one 8-bit variable for Arm Helium: sixteen values of its table at a time. */
#ifndef UACCEL_LOOKUP_HELIUM_H
#define UACCEL_LOOKUP_HELIUM_H

#include "uaccel_elementwise.h"
#include "uaccel_helium.h"

/* The output may be the input. */
UACCEL_KERNEL void uaccel_lookup_helium(const struct uaccel_lookup *p, const void *input, const void *table,
                                        void *output)
{
    const uint8_t *from = input, *const values = table;
    uint8_t *to = output;
    uaccel_index left = p->elements;
    for (; left >= 16; left -= 16) {
        vstrbq_u8(to, vldrbq_gather_offset_u8(values, vldrbq_u8(from)));
        from += 16;
        to += 16;
    }
    if (left > 0) {
        const mve_pred16_t some = vctp8q((uint32_t)left);
        vstrbq_p_u8(to, vldrbq_gather_offset_z_u8(values, vldrbq_z_u8(from, some), some), some);
    }
}

#endif
