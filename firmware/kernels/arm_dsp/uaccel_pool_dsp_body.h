/* Maxima for one element type; included by uaccel_pool_dsp.h, once a type. A word has four channels of bytes, or two of
 * halves. */

/* Four channels; `fours` is 2: eight. */
UACCEL_KERNEL void UACCEL_FN(uaccel_pool_dsp_max4)(const struct uaccel_pool *p, const UACCEL_ELEMENT *pixels,
                                                   uaccel_index height, uaccel_index width, uaccel_index fours,
                                                   UACCEL_ELEMENT *output)
{
    const uaccel_index size = (uaccel_index)sizeof(UACCEL_ELEMENT), lanes = 4 / size, words = fours * size;
    const uint32_t mask = size == 1 ? 0xFF : 0xFFFF, ones = size == 1 ? 0x01010101u : 0x00010001u;
    const uint32_t lowest = ((uint32_t)p->clamp_min & mask) * ones, highest = ((uint32_t)p->clamp_max & mask) * ones;
    uint32_t largest[2 * sizeof(UACCEL_ELEMENT)] = {lowest, lowest};
    largest[2 * size - 2] = largest[2 * size - 1] = lowest; /* of halves there are four */
    for (; height > 0; --height) {
        const UACCEL_ELEMENT *pixel = pixels, *end = pixels + width * p->geo.in_channels;
        do {
            for (uaccel_index i = 0; i < words; ++i) {
                largest[i] = UACCEL_FN(uaccel_pool_dsp_larger)(largest[i], uaccel_dsp_load(pixel + lanes * i));
            }
            pixel += p->geo.in_channels;
        } while (pixel != end);
        pixels += p->geo.in_width * p->geo.in_channels;
    }
    for (uaccel_index i = 0; i < words; ++i) {
        if (p->clamp_max < (size == 1 ? INT8_MAX : INT16_MAX)) {
            /* the smaller one, of complements */
            largest[i] = ~UACCEL_FN(uaccel_pool_dsp_larger)(~largest[i], ~highest);
        }
        memcpy(output + lanes * i, &largest[i], 4);
    }
}

/* All channels of a window: by eights and fours, the last four over again where they are no multiple of four. */
UACCEL_KERNEL void UACCEL_FN(uaccel_pool_dsp_max)(const struct uaccel_pool *p, const UACCEL_ELEMENT *pixels,
                                                  uaccel_index height, uaccel_index width, UACCEL_ELEMENT *output)
{
    uaccel_index c = 0;
    for (; c + 8 <= p->geo.in_channels; c += 8) {
        UACCEL_FN(uaccel_pool_dsp_max4)(p, pixels + c, height, width, 2, output + c);
    }
    for (; c < p->geo.in_channels; c += 4) {
        const uaccel_index at = c + 4 <= p->geo.in_channels ? c : p->geo.in_channels - 4;
        UACCEL_FN(uaccel_pool_dsp_max4)(p, pixels + at, height, width, 1, output + at);
    }
}
