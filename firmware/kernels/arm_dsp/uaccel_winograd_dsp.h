/* Winograd's convolution F(2x2, 3x3) for Arm's DSP extension: NHWC, int8, windows of 3x3 at stride 1.
 *
 * A tile of 4x4 inputs gives 2x2 outputs by 16 products a channel instead of 36. All is in integers and exact: weights
 * are transformed ahead of time with a factor of four, so that no halves come about, and they and the transformed
 * inputs are halves of words. Sums wrap around on their way, what they end as does not: the compiler checks that four
 * times a sum fits. Two tiles side by side are computed together. */
#ifndef UACCEL_WINOGRAD_DSP_H
#define UACCEL_WINOGRAD_DSP_H

#include "uaccel_dsp.h"

#define UACCEL_WINOGRAD_ROWS 4
#define UACCEL_WINOGRAD_COLUMNS 6 /* of two tiles, which share two */
#define UACCEL_WINOGRAD_SUMS 128  /* of 16 places, four channels and two tiles */

struct uaccel_winograd_dsp {
    uaccel_index batch, in_height, in_width, in_channels; /* a multiple of four */
    uaccel_index out_height, out_width, out_channels;     /* a multiple of four */
    uaccel_index pad_top, pad_left;
    int32_t input_zero_point;
    struct uaccel_dsp_finish finish;
};

/* Where the inputs of two tiles lie. */
struct uaccel_winograd_region {
    const int8_t *from;
    uaccel_index row; /* bytes from one to the next */
};

/* The inputs of two tiles; copied, borders and all, where they do not lie inside the image. */
UACCEL_SHARED struct uaccel_winograd_region uaccel_winograd_inputs(const struct uaccel_winograd_dsp *p,
                                                                   const int8_t *input, uaccel_index top,
                                                                   uaccel_index left, int8_t *stage)
{
    const uaccel_index pixel = p->in_channels, row = p->in_width * pixel;
    if (top >= 0 && left >= 0 && top + UACCEL_WINOGRAD_ROWS <= p->in_height &&
        left + UACCEL_WINOGRAD_COLUMNS <= p->in_width) {
        const struct uaccel_winograd_region inside = {input + top * row + left * pixel, row};
        return inside;
    }
    const struct uaccel_winograd_region copied = {stage, UACCEL_WINOGRAD_COLUMNS * pixel};
    const uaccel_index skip = left < 0 ? -left : 0;
    const uaccel_index over = left + UACCEL_WINOGRAD_COLUMNS - p->in_width;
    const uaccel_index inside = UACCEL_WINOGRAD_COLUMNS - skip - (over > 0 ? over : 0);
    memset(stage, p->input_zero_point, (size_t)(UACCEL_WINOGRAD_ROWS * copied.row));
    for (uaccel_index y = top; y < top + UACCEL_WINOGRAD_ROWS; ++y) {
        if (y >= 0 && y < p->in_height && inside > 0) {
            memcpy(stage + skip * pixel, input + y * row + (left + skip) * pixel, (size_t)(inside * pixel));
        }
        stage += copied.row;
    }
    return copied;
}

/* Two channels in halves: those of a word's bytes 0 and 2, or 1 and 3. */
UACCEL_KERNEL uint32_t uaccel_winograd_halves(const int8_t *from, bool odd)
{
    const uint32_t word = uaccel_dsp_load(from);
    return odd ? uaccel_dsp_odd(word) : uaccel_dsp_even(word);
}

UACCEL_KERNEL uint32_t uaccel_winograd_add(uint32_t a, uint32_t b)
{
    uint32_t sum;
    __asm__("sadd16 %0, %1, %2" : "=r"(sum) : "r"(a), "r"(b) : "cc");
    return sum;
}

UACCEL_KERNEL uint32_t uaccel_winograd_sub(uint32_t a, uint32_t b)
{
    uint32_t difference;
    __asm__("ssub16 %0, %1, %2" : "=r"(difference) : "r"(a), "r"(b) : "cc");
    return difference;
}

/* Two channels of both tiles. target: of each place a word of either tile; `place` words from one to the next. */
UACCEL_SHARED void uaccel_winograd_transform(const int8_t *from, uaccel_index row, uaccel_index pixel, bool odd,
                                             uint32_t *target, uaccel_index place)
{
    uint32_t columns[UACCEL_WINOGRAD_ROWS][UACCEL_WINOGRAD_COLUMNS];
    for (int x = 0; x < UACCEL_WINOGRAD_COLUMNS; ++x) {
        const uint32_t a = uaccel_winograd_halves(from, odd), b = uaccel_winograd_halves(from + row, odd);
        const uint32_t c = uaccel_winograd_halves(from + 2 * row, odd), d = uaccel_winograd_halves(from + 3 * row, odd);
        columns[0][x] = uaccel_winograd_sub(a, c);
        columns[1][x] = uaccel_winograd_add(b, c);
        columns[2][x] = uaccel_winograd_sub(c, b);
        columns[3][x] = uaccel_winograd_sub(b, d);
        from += pixel;
    }
    for (int y = 0; y < UACCEL_WINOGRAD_ROWS; ++y) {
        const uint32_t *c = columns[y];
        const uint32_t c1 = c[1], c2 = c[2], c3 = c[3], c4 = c[4];
        target[0] = uaccel_winograd_sub(c[0], c2);
        target[1] = uaccel_winograd_sub(c2, c4);
        target += place;
        target[0] = uaccel_winograd_add(c1, c2);
        target[1] = uaccel_winograd_add(c3, c4);
        target += place;
        target[0] = uaccel_winograd_sub(c2, c1);
        target[1] = uaccel_winograd_sub(c4, c3);
        target += place;
        target[0] = uaccel_winograd_sub(c1, c3);
        target[1] = uaccel_winograd_sub(c3, c[5]);
        target += place;
    }
}

UACCEL_ASSEMBLY_BEGIN

/* The sums of four channels of two tiles in 16 places. tiles: as transformed, `bytes` of each place, a multiple of 16;
 * stream: for each two inputs a word of each channel. Where the stream ends. */
UACCEL_ASSEMBLY const int32_t *uaccel_winograd_products(const uint32_t *tiles, const int32_t *stream, int32_t *sums,
                                                        uaccel_index bytes)
{
    __asm__(".syntax unified\n"
            ".macro uaccel_step\n"
            "ldmia r0!, {r2, r3}\n"
            "ldmia r1!, {r12, lr}\n"
            "smlad r4, r2, r12, r4\n"
            "smlad r5, r3, r12, r5\n"
            "smlad r6, r2, lr, r6\n"
            "smlad r7, r3, lr, r7\n"
            "ldmia r1!, {r12, lr}\n"
            "smlad r8, r2, r12, r8\n"
            "smlad r9, r3, r12, r9\n"
            "smlad r10, r2, lr, r10\n"
            "smlad r11, r3, lr, r11\n"
            ".endm\n"
            "push {r4-r11, lr}\n"
            "and r12, r3, #63\n"
            "sub r4, r3, r12\n" /* bytes in whole rounds of eight steps */
            "add r5, r2, #512\n"
            "push {r2, r3, r4, r5}\n"
            "sub sp, #8\n"
            "1: ldrd r2, r3, [sp, #12]\n"
            "add r2, r0, r2\n"
            "add r12, r0, r3\n"
            "strd r12, r2, [sp]\n"
            ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "cmp r0, r12\n"
            "beq 3f\n"
            "2: .rept 8\n"
            "uaccel_step\n"
            ".endr\n"
            "ldr r12, [sp]\n"
            "cmp r0, r12\n"
            "bne 2b\n"
            "3: ldr r12, [sp, #4]\n"
            "cmp r0, r12\n"
            "beq 5f\n"
            "4: uaccel_step\n"
            "uaccel_step\n"
            "ldr r12, [sp, #4]\n"
            "cmp r0, r12\n"
            "bne 4b\n"
            "5: ldr r2, [sp, #8]\n"
            "ldr r3, [sp, #20]\n"
            "stmia r2!, {r4-r11}\n"
            "str r2, [sp, #8]\n"
            "cmp r2, r3\n"
            "bne 1b\n"
            "mov r0, r1\n"
            "add sp, #24\n"
            "pop {r4-r11, pc}\n"
            ".purgem uaccel_step\n");
}

UACCEL_ASSEMBLY_END

/* A byte of a result from four times what is summed up; constants: multiplier, offset, shift. */
UACCEL_KERNEL uint8_t uaccel_winograd_round(int32_t sum, const int32_t *constants, int32_t sign)
{
    int32_t value = sum >> 1;
    if (sign) {
        __asm__("smmulr %0, %0, %1" : "+r"(value) : "r"(constants[0]));
        value += (value >> 31) + constants[1];
    } else {
        __asm__("smmlar %0, %0, %1, %2" : "+r"(value) : "r"(constants[0]), "r"(constants[1]));
    }
    value >>= constants[2];
    __asm__("ssat %0, #8, %0" : "+r"(value) : : "cc");
    return (uint8_t)value;
}

/* Four results of one channel and tile from its sums, which lie eight apart; each to its pixel's four bytes. constants:
 * four times the bias, and those of the output stage. */
UACCEL_KERNEL void uaccel_winograd_results(const int32_t *sums, const int32_t *constants, int32_t sign,
                                           uint8_t *results)
{
    uint32_t upper[4], lower[4];
    for (int x = 0; x < 4; ++x) {
        const uint32_t a = (uint32_t)sums[8 * x], b = (uint32_t)sums[32 + 8 * x];
        const uint32_t c = (uint32_t)sums[64 + 8 * x], d = (uint32_t)sums[96 + 8 * x];
        upper[x] = a + b + c;
        lower[x] = b - c - d;
    }
    const uint32_t bias = (uint32_t)constants[0];
    results[0] = uaccel_winograd_round((int32_t)(bias + upper[0] + upper[1] + upper[2]), constants + 1, sign);
    results[4] = uaccel_winograd_round((int32_t)(bias + upper[1] - upper[2] - upper[3]), constants + 1, sign);
    results[16] = uaccel_winograd_round((int32_t)(bias + lower[0] + lower[1] + lower[2]), constants + 1, sign);
    results[20] = uaccel_winograd_round((int32_t)(bias + lower[1] - lower[2] - lower[3]), constants + 1, sign);
}

/* Each byte of a word into the bounds. */
UACCEL_KERNEL uint32_t uaccel_winograd_clamp(const struct uaccel_dsp_finish *finish, uint32_t word)
{
    uint32_t other;
    __asm__("ssub8 %1, %0, %2\n\t"
            "sel %0, %0, %2\n\t"
            "ssub8 %1, %3, %0\n\t"
            "sel %0, %0, %3"
            : "+&r"(word), "=&r"(other)
            : "r"(finish->lowest), "r"(finish->highest)
            : "cc");
    return word;
}

/* Four channels of 2x4 pixels; those that the image has not are left away. Returns where the constants end. */
UACCEL_SHARED const int32_t *uaccel_winograd_finish(const struct uaccel_winograd_dsp *p, const int32_t *sums,
                                                    const int32_t *constants, int8_t *output, uaccel_index rows,
                                                    uaccel_index columns)
{
    union {
        uint8_t bytes[32];
        uint32_t words[8];
    } results;
    for (int channel = 0; channel < 4; ++channel) {
        uaccel_winograd_results(sums, constants, p->finish.sign, results.bytes + channel);
        uaccel_winograd_results(sums + 1, constants, p->finish.sign, results.bytes + 8 + channel);
        sums += 2;
        constants += 4;
    }
    for (uaccel_index y = 0; y < 2 && y < rows; ++y) {
        for (uaccel_index x = 0; x < 4 && x < columns; ++x) {
            const uint32_t word = results.words[4 * y + x];
            const uint32_t bounded = p->finish.clamp ? uaccel_winograd_clamp(&p->finish, word) : word;
            memcpy(output + (y * p->out_width + x) * p->out_channels, &bounded, 4);
        }
    }
    return constants;
}

/* 2x4 pixels of all channels from the inputs at a row and column. */
UACCEL_KERNEL void uaccel_winograd_block(const struct uaccel_winograd_dsp *p, const int8_t *input,
                                         const int32_t *stream, int8_t *output, void *scratch, uaccel_index y,
                                         uaccel_index x)
{
    int32_t *sums = scratch;
    uint32_t *tiles = (uint32_t *)scratch + UACCEL_WINOGRAD_SUMS;
    const uaccel_index depth = p->in_channels;
    int8_t *stage = (int8_t *)(tiles + 16 * depth);
    const struct uaccel_winograd_region region =
        uaccel_winograd_inputs(p, input, y - p->pad_top, x - p->pad_left, stage);
    for (uaccel_index channel = 0; channel < depth; channel += 2) {
        uaccel_winograd_transform(region.from + (channel & ~3), region.row, depth, (channel & 2) != 0, tiles + channel,
                                  depth);
    }
    for (uaccel_index channel = 0; channel < p->out_channels; channel += 4) {
        stream = uaccel_winograd_products(tiles, stream, sums, 4 * depth);
        stream = uaccel_winograd_finish(p, sums, stream, output + channel, p->out_height - y, p->out_width - x);
    }
}

/* scratch: 512 bytes, and for each input channel 64, and 24 more where there are borders or the image has no whole
 * blocks. */
UACCEL_SHARED void uaccel_winograd_dsp_s8(const struct uaccel_winograd_dsp *p, const int8_t *input,
                                          const int32_t *stream, int8_t *output, void *scratch)
{
    for (uaccel_index n = 0; n < p->batch; ++n) {
        for (uaccel_index y = 0; y < p->out_height; y += 2) {
            for (uaccel_index x = 0; x < p->out_width; x += 4) {
                int8_t *target = output + (y * p->out_width + x) * p->out_channels;
                uaccel_winograd_block(p, input, stream, target, scratch, y, x);
            }
        }
        input += p->in_height * p->in_width * p->in_channels;
        output += p->out_height * p->out_width * p->out_channels;
    }
}

#endif
