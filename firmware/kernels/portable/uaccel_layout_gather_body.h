/* The gather kernel for one type of index; included by uaccel_layout.h, once a type. */

UACCEL_KERNEL void UACCEL_FN(uaccel_gather)(const struct uaccel_gather *p, const void *data,
                                            const UACCEL_INDEX *indices, void *output)
{
    const uint8_t *from = (const uint8_t *)data;
    uint8_t *to = (uint8_t *)output;
    for (uaccel_index o = 0; o < p->outer; ++o) {
        for (uaccel_index i = 0; i < p->count; ++i) {
            memcpy(to, from + uaccel_nearest_slice(indices[i], p->entries - 1) * p->bytes, (size_t)p->bytes);
            to += p->bytes;
        }
        from += p->entries * p->bytes;
    }
}

#undef UACCEL_INDEX
#undef UACCEL_FN
