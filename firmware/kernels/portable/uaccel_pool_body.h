/* The pooling kernels for one element type; included by uaccel_pool.h, once a type. */

/* Means, halves away from zero. The front end has made sure that a sum fits 32 bits. */
UACCEL_KERNEL void UACCEL_FN(uaccel_pool_means)(const struct uaccel_pool *p, const UACCEL_ELEMENT *pixels,
                                                uaccel_index height, uaccel_index width, UACCEL_ELEMENT *output)
{
    for (uaccel_index c = 0; c < p->channels; ++c) {
        int32_t sum = 0;
        for (uaccel_index y = 0; y < height; ++y) {
            for (uaccel_index x = 0; x < width; ++x) {
                sum += pixels[(y * p->in_width + x) * p->channels + c];
            }
        }
        sum = uaccel_rounded_mean(sum, height * width);
        output[c] = (UACCEL_ELEMENT)uaccel_clamp(sum, p->clamp_min, p->clamp_max);
    }
}

UACCEL_KERNEL void UACCEL_FN(uaccel_pool_maxima)(const struct uaccel_pool *p, const UACCEL_ELEMENT *pixels,
                                                 uaccel_index height, uaccel_index width, UACCEL_ELEMENT *output)
{
    for (uaccel_index c = 0; c < p->channels; ++c) {
        int32_t largest = p->clamp_min;
        for (uaccel_index y = 0; y < height; ++y) {
            for (uaccel_index x = 0; x < width; ++x) {
                const int32_t value = pixels[(y * p->in_width + x) * p->channels + c];
                largest = value > largest ? value : largest;
            }
        }
        output[c] = (UACCEL_ELEMENT)uaccel_clamp(largest, p->clamp_min, p->clamp_max);
    }
}

UACCEL_POOL(UACCEL_FN(uaccel_average_pool), UACCEL_ELEMENT, UACCEL_FN(uaccel_pool_means))
UACCEL_POOL(UACCEL_FN(uaccel_max_pool), UACCEL_ELEMENT, UACCEL_FN(uaccel_pool_maxima))
