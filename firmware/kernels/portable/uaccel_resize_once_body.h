/* Bilinear resizing for one element type; included by uaccel_resize.h, once a type. */

/* Weights add up to parts_y * parts_x, and the operator's type rule has made sure that the sum fits 32 bits. */
UACCEL_KERNEL UACCEL_ELEMENT UACCEL_FN(uaccel_resize_once_finish)(const struct uaccel_resize_once *p, int32_t sum)
{
    const int32_t centred = sum - p->input_zero_point * (p->parts_y * p->parts_x);
    const int64_t rounded = uaccel_round_half_even((int64_t)centred * p->multiplier, p->shift, p->tolerance);
    return (UACCEL_ELEMENT)uaccel_finish_half_even(rounded, p->output_zero_point, p->clamp_min, p->clamp_max,
                                                   p->shift > 32);
}

/* rows[2 y], rows[2 y + 1]: the input row before an output row, and how many parts of a pixel lie between them. */
UACCEL_KERNEL void UACCEL_FN(uaccel_resize_once)(const struct uaccel_resize_once *p, const UACCEL_ELEMENT *input,
                                                 const int16_t *rows, const int16_t *columns, UACCEL_ELEMENT *output)
{
    const uaccel_index row = p->in_width * p->channels;
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            const UACCEL_ELEMENT *above = input + rows[2 * y] * row;
            const UACCEL_ELEMENT *below = rows[2 * y] + 1 < p->in_height ? above + row : above;
            const int32_t down = rows[2 * y + 1], up = p->parts_y - down;
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const int32_t later = columns[2 * x + 1], sooner = p->parts_x - later;
                const uaccel_index left = columns[2 * x] * p->channels;
                const uaccel_index right = columns[2 * x] + 1 < p->in_width ? left + p->channels : left;
                for (uaccel_index c = 0; c < p->channels; ++c) {
                    const int32_t first = above[left + c] * sooner + above[right + c] * later;
                    const int32_t second = below[left + c] * sooner + below[right + c] * later;
                    *output++ = UACCEL_FN(uaccel_resize_once_finish)(p, first * up + second * down);
                }
            }
        }
        input += p->in_height * row;
    }
}
