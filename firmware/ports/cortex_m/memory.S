/* memcpy and memset in few bytes, 16 of theirs at a time: the C library's take 470. For cores that access words at any
 * address; others have the library's. */
#if __ARM_ARCH == 7

    .syntax unified
    .thumb

    .section .text.memcpy, "ax", %progbits
    .balign 4
    .global memcpy
    .type memcpy, %function
    .thumb_func
memcpy:
    mov     r12, r0
    subs    r2, #16
    blo     2f
    push    {r4, lr}
1:  ldr     r3, [r1]
    ldr     r4, [r1, #4]
    ldr     lr, [r1, #8]
    str     r3, [r12]
    str     r4, [r12, #4]
    ldr     r3, [r1, #12]
    str     lr, [r12, #8]
    str     r3, [r12, #12]
    adds    r1, #16
    add     r12, #16
    subs    r2, #16
    bhs     1b
    pop     {r4, lr}
2:  adds    r2, #12
    blo     4f
3:  ldr     r3, [r1], #4
    str     r3, [r12], #4
    subs    r2, #4
    bhs     3b
4:  adds    r2, #4
    beq     6f
5:  ldrb    r3, [r1], #1
    strb    r3, [r12], #1
    subs    r2, #1
    bne     5b
6:  bx      lr
    .size memcpy, . - memcpy

    .section .text.memset, "ax", %progbits
    .balign 4
    .global memset
    .type memset, %function
    .thumb_func
memset:
    mov     r12, r0
    uxtb    r1, r1
    orr     r1, r1, r1, lsl #8
    orr     r1, r1, r1, lsl #16
    subs    r2, #16
    blo     2f
1:  str     r1, [r12], #4
    str     r1, [r12], #4
    str     r1, [r12], #4
    str     r1, [r12], #4
    subs    r2, #16
    bhs     1b
2:  adds    r2, #16
    beq     4f
3:  strb    r1, [r12], #1
    subs    r2, #1
    bne     3b
4:  bx      lr
    .size memset, . - memset

#endif
