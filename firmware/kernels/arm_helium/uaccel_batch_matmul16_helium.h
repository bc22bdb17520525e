/* Matrix products of int16 for Arm Helium: eight products an instruction, added to 64 bits. */
#ifndef UACCEL_BATCH_MATMUL16_HELIUM_H
#define UACCEL_BATCH_MATMUL16_HELIUM_H

#include "uaccel_batch_matmul16.h"
#include "uaccel_helium.h"

/* Vector by vector, those of four columns. What is behind a column's end is multiplied by zero. */
UACCEL_KERNEL void uaccel_batch_matmul16_pack_helium(const struct uaccel_batch_matmul16 *p, const int16_t *columns,
                                                     uaccel_index count, int16_t *packed)
{
    const uaccel_index depth = p->layer.depth;
    if (p->layer.rhs_depth_step == 1) {
        for (uaccel_index c = 0; c < count; ++c) {
            for (uaccel_index k = 0; k < depth; k += 8) {
                const mve_pred16_t some = vctp16q((uint32_t)(depth - k));
                vstrhq_s16(packed + 4 * k + 8 * c, vldrhq_z_s16(columns + c * p->layer.rhs_column_step + k, some));
            }
        }
        return;
    }
    const uint32x4_t places = vmulq_n_u32(vidupq_n_u32(0, 1), 8);
    const mve_pred16_t some = vctp32q((uint32_t)count);
    for (uaccel_index k = 0; k < depth; ++k) {
        const int32x4_t row = vldrhq_z_s32(columns + k * p->layer.rhs_depth_step, some);
        vstrhq_scatter_shifted_offset_s32(packed + (k >> 3) * 32 + (k & 7), places, row);
    }
}

UACCEL_ASSEMBLY_BEGIN

/* A row, of which input..end are the elements, times four packed columns. */
UACCEL_ASSEMBLY void uaccel_batch_matmul16_four_helium(const int16_t *input, const int16_t *end, const int16_t *columns,
                                                       int64_t *sums)
{
    __asm__(".syntax unified\n"
            "push {r3-r11, lr}\n"
            "sub lr, r1, r0\n"
            "lsr lr, lr, #1\n"
            ".irp sum, r4, r5, r6, r7, r8, r9, r10, r11\n"
            "mov \\sum, #0\n"
            ".endr\n"
            "dlstp.16 lr, lr\n"
            "1: vldrh.u16 q0, [r0], #16\n"
            "vldrh.u16 q1, [r2], #16\n"
            "vldrh.u16 q2, [r2], #16\n"
            "vmlaldava.s16 r4, r5, q0, q1\n"
            "vldrh.u16 q1, [r2], #16\n"
            "vmlaldava.s16 r6, r7, q0, q2\n"
            "vldrh.u16 q2, [r2], #16\n"
            "vmlaldava.s16 r8, r9, q0, q1\n"
            "vmlaldava.s16 r10, r11, q0, q2\n"
            "letp lr, 1b\n"
            "pop {r3}\n"
            "stmia r3, {r4-r11}\n"
            "pop {r4-r11, pc}\n");
}

UACCEL_ASSEMBLY_END

#define UACCEL_MATMUL16(name) name##_helium
#include "uaccel_batch_matmul16_body.h"

#endif
