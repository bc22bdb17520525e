/* Sums of products for Arm Helium, eight rows of weights at a time: what SVDF, LSTM and others begin with. */
#ifndef UACCEL_DOTS_HELIUM_H
#define UACCEL_DOTS_HELIUM_H

#include "uaccel_dots.h"
#include "uaccel_helium.h"

UACCEL_ASSEMBLY_BEGIN

/* uaccel_rows: 16 bytes at r3 with eight vectors of weights at r1, added to eight sums. */
#define UACCEL_HELIUM_ROWS               \
    ".macro uaccel_two sum, other\n"     \
    "vldrw.u32 q2, [r1], #16\n"          \
    "vmladava.s8 \\sum, q0, q1\n"       \
    "vldrw.u32 q1, [r1], #16\n"          \
    "vmladava.s8 \\other, q0, q2\n"     \
    ".endm\n"                            \
    ".macro uaccel_rows\n"               \
    "vldrb.u8 q0, [r3], #16\n"           \
    "vldrw.u32 q1, [r1], #16\n"          \
    "uaccel_two r0, r2\n"                \
    "uaccel_two r4, r6\n"                \
    "uaccel_two r8, r10\n"               \
    "vldrw.u32 q2, [r1], #16\n"          \
    "vmladava.s8 r12, q0, q1\n"          \
    "vmladava.s8 lr, q0, q2\n"           \
    ".endm\n"

/* input..end: whole vectors of 16 bytes. weights: for each of them a vector of every row. */
UACCEL_ASSEMBLY void uaccel_eight_dots_helium(const int8_t *input, const int8_t *end, const int32_t *weights,
                                              int32_t *sums)
{
    __asm__(".syntax unified\n" UACCEL_HELIUM_ROWS
            "push {r3-r11, lr}\n"
            "mov r11, r1\n"
            "mov r1, r2\n"
            "mov r3, r0\n"
            ".irp sum, r0, r2, r4, r6, r8, r10, r12, lr\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "1: uaccel_rows\n"
            "cmp r3, r11\n"
            "bne 1b\n"
            "ldr r3, [sp]\n"
            "stmia r3, {r0, r2, r4, r6, r8, r10, r12, lr}\n"
            "pop {r3-r11, pc}\n" UACCEL_PURGE("uaccel_two, uaccel_rows"));
}

UACCEL_ASSEMBLY_END

/* `width` is b or h, of which a vector has so many lanes. */
#define UACCEL_ROW_HELIUM(bits, width, lanes)                                                                        \
    UACCEL_KERNEL int32_t uaccel_row_s##bits##_dots_helium(const int##bits##_t *a, const int##bits##_t *b,           \
                                                           uaccel_index count, int32_t sum)                          \
    {                                                                                                                \
        for (; count >= lanes; count -= lanes) {                                                                     \
            sum = vmladavaq_s##bits(sum, vldr##width##q_s##bits(a), vldr##width##q_s##bits(b));                      \
            a += lanes;                                                                                              \
            b += lanes;                                                                                              \
        }                                                                                                            \
        if (count > 0) {                                                                                             \
            const mve_pred16_t some = vctp##bits##q((uint32_t)count);                                                \
            sum = vmladavaq_p_s##bits(sum, vldr##width##q_z_s##bits(a, some), vldr##width##q_z_s##bits(b, some), some); \
        }                                                                                                            \
        return sum;                                                                                                  \
    }
UACCEL_ROW_HELIUM(8, b, 16)
UACCEL_ROW_HELIUM(16, h, 8)
#undef UACCEL_ROW_HELIUM

/* Words of the weights of up to eight rows: those that there are not are zeros. */
UACCEL_KERNEL uaccel_index uaccel_words_dots_helium(uaccel_index filled, uaccel_index rows)
{
    (void)rows;
    return filled * 2;
}

UACCEL_KERNEL void uaccel_rows_dots_helium(const int8_t *input, uaccel_index filled, const int32_t *weights,
                                           uaccel_index rows, int32_t *sums)
{
    (void)rows;
    uaccel_eight_dots_helium(input, input + filled, weights, sums);
}

/* uaccel_requantise of four sums. */
UACCEL_KERNEL int32x4_t uaccel_requantise_helium(int32x4_t x, int32_t multiplier, int32_t shift)
{
    if (shift > 0) {
        x = vshlq_r_s32(x, shift);
    }
    x = vqrdmulhq_n_s32(x, multiplier);
    /* halves away from zero: one less where negative, and then upwards */
    return shift < 0 ? vrshlq_n_s32(vqaddq_s32(x, vshrq_n_s32(x, 31)), shift) : x;
}

/* Up to eight sums with their biases on another scale; there is room for eight. */
UACCEL_KERNEL void uaccel_scaled_dots_helium(int32_t *sums, const int32_t *bias, uaccel_index rows,
                                             struct uaccel_dots_scale scale)
{
    for (; rows > 0; rows -= 4) {
        const int32x4_t acc = vaddq_s32(vldrwq_s32(sums), vldrwq_z_s32(bias, vctp32q((uint32_t)rows)));
        vstrwq_s32(sums, uaccel_requantise_helium(acc, scale.multiplier, scale.shift));
        sums += 4;
        bias += 4;
    }
}

/* Bytes towards lower addresses, or elsewhere. */
UACCEL_KERNEL void uaccel_move_dots_helium(const void *from, void *to, uaccel_index bytes)
{
    uaccel_helium_copy(to, from, bytes);
}

#endif
