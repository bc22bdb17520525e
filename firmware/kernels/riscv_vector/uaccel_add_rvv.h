/* Addition and subtraction of int8 tensors of one shape for RISC-V's vector extension. */
#ifndef UACCEL_ADD_RVV_H
#define UACCEL_ADD_RVV_H

#include "uaccel_rvv.h"

/* One input on the common scale: ((value << shift) + offset) * multiplier / 2^31, rounded, and then halves of
 * 2^exponent away from zero; with a multiplier of 0 it is what stands in the brackets. */
struct uaccel_add_rvv_side {
    int32_t shift, offset, multiplier, exponent;
};

struct uaccel_add_rvv {
    uaccel_index elements;
    struct uaccel_add_rvv_side first, second;
    int32_t multiplier, offset, shift; /* of the sum, as the constants of uaccel_rvv.h */
    int32_t clamp_min, clamp_max;
    int32_t subtract; /* 1: first - second */
};

/* `number`: of the side; `skip`: a label of its own */
#define UACCEL_ADD_RVV_RAISE(number, bytes, value, skip)                                                             \
    "vle8.v " bytes ", (%[input" number "])\n\t"                                                                     \
    "add %[input" number "], %[input" number "], %[now]\n\t"                                                         \
    "vsext.vf4 " value ", " bytes "\n\t"                                                                             \
    "vsll.vx " value ", " value ", %[shift" number "]\n\t"                                                           \
    "vadd.vx " value ", " value ", %[offset" number "]\n\t"                                                          \
    "beqz %[multiplier" number "], " skip "f\n\t"                                                                    \
    "vsmul.vx " value ", " value ", %[multiplier" number "]\n\t"                                                     \
    "beqz %[exponent" number "], " skip "f\n\t"                                                                      \
    "vsra.vi v24, " value ", 31\n\t"                                                                                 \
    "vadd.vv " value ", " value ", v24\n\t"                                                                          \
    "vssra.vx " value ", " value ", %[exponent" number "]\n" skip ":\n\t"

/* The output may be either input. */
UACCEL_SHARED void uaccel_add_rvv_s8(const struct uaccel_add_rvv *p, const int8_t *input1, const int8_t *input2,
                                     int8_t *output)
{
    uaccel_index left = p->elements, now;
    __asm volatile(
        UACCEL_RVV_BEGIN "csrwi 0x00a, 0\n" /* vxrm: halves upwards */
                         "1:\n\t"
                         "vsetvli %[now], %[left], e32, m8, ta, ma\n\t" UACCEL_ADD_RVV_RAISE("1", "v0", "v8", "2")
                             UACCEL_ADD_RVV_RAISE("2", "v2", "v16", "3") "sub %[left], %[left], %[now]\n\t"
                         "bnez %[subtract], 4f\n\t"
                         "vadd.vv v8, v8, v16\n\t"
                         "j 5f\n"
                         "4:\n\t"
                         "vsub.vv v8, v8, v16\n"
                         "5:\n\t"
                         "vsmul.vx v8, v8, %[multiplier]\n\t" UACCEL_RVV_SIGN("v8") "vadd.vx v8, v8, %[offset]\n\t"
                         "vsra.vx v8, v8, %[shift]\n\t"
                         "vsetvli zero, %[now], e16, m4, ta, ma\n\t" UACCEL_RVV_NARROW("v8")
                         "vsetvli zero, zero, e8, m2, ta, ma\n\t" UACCEL_RVV_STORE("v8")
                         "add %[output], %[output], %[now]\n\t"
                         "bnez %[left], 1b" UACCEL_RVV_END
        : [input1] "+&r"(input1), [input2] "+&r"(input2), [output] "+&r"(output), [left] "+&r"(left), [now] "=&r"(now)
        : [shift1] "r"(p->first.shift), [offset1] "r"(p->first.offset), [multiplier1] "r"(p->first.multiplier),
          [exponent1] "r"(p->first.exponent), [shift2] "r"(p->second.shift), [offset2] "r"(p->second.offset),
          [multiplier2] "r"(p->second.multiplier), [exponent2] "r"(p->second.exponent), [subtract] "r"(p->subtract),
          [multiplier] "r"(p->multiplier), [offset] "r"(p->offset), [shift] "r"(p->shift), [low] "r"(p->clamp_min),
          [high] "r"(p->clamp_max)
        : UACCEL_RVV_CLOBBERS);
}

#endif
