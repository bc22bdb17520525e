/* The kernels for one type of index; included by uaccel_layout_blocks.h, once a type. */

UACCEL_KERNEL void UACCEL_FN(uaccel_gather_blocks)(const struct uaccel_gather_blocks *p, const void *table,
                                                   const UACCEL_INDEX *indices, void *output)
{
    for (uaccel_index i = 0; i < p->count; ++i) {
        uaccel_copy_entry(p, uaccel_entry_in_block(p, table, indices[i]),
                          (uint8_t *)output + i * p->depth * p->width);
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_gather_blocks_f16)(const struct uaccel_gather_blocks *p, const void *table,
                                                       const UACCEL_INDEX *indices, float *output)
{
    for (uaccel_index i = 0; i < p->count; ++i) {
        uaccel_widen_entry(p, uaccel_entry_in_block(p, table, indices[i]), output + i * p->depth);
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_gather_pairs)(const struct uaccel_gather_stream *p, const void *stream,
                                                  const UACCEL_INDEX *indices, int8_t *output)
{
    for (uaccel_index i = 0; i < p->count; ++i) {
        uaccel_copy_of_pairs(p, stream, uaccel_nearest_slice(indices[i], p->entries - 1), output + i * p->depth);
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_gather_vectors)(const struct uaccel_gather_stream *p, const void *stream,
                                                  const UACCEL_INDEX *indices, int8_t *output)
{
    for (uaccel_index i = 0; i < p->count; ++i) {
        uaccel_copy_of_vectors(p, stream, uaccel_nearest_slice(indices[i], p->entries - 1), output + i * p->depth);
    }
}

#undef UACCEL_INDEX
#undef UACCEL_FN
