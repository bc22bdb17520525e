/* The windows of a depthwise convolution of int16 activations, one after the other.
 *
 * The including header says what is done with them, then includes this file, which forgets it again:
 *
 *   UACCEL_DEPTHWISE16         the kernel's name
 *   UACCEL_DEPTHWISE16_WINDOW  gives every channel of one window: void (p, taps, stream, output) */

UACCEL_KERNEL void UACCEL_DEPTHWISE16(const struct uaccel_depthwise16 *p, const int16_t *input, const int32_t *stream,
                                      int16_t *output)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; ++y) {
            for (uaccel_index x = 0; x < p->out_width; ++x) {
                const struct uaccel_depthwise16_taps taps = uaccel_depthwise16_taps(p, input, y, x);
                UACCEL_DEPTHWISE16_WINDOW(p, &taps, stream, output);
                output += p->channels;
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
    }
}

#undef UACCEL_DEPTHWISE16
#undef UACCEL_DEPTHWISE16_WINDOW
