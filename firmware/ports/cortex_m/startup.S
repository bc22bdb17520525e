/* From reset to main() on any Cortex-M: vector table, FPU and Helium, .data, accelerators' constants and .bss.
 *
 * main() runs on the process stack (uaccel_stack_*), exceptions on a small one of their own (uaccel_interrupt_stack_*),
 * so that a fault can be reported when the stack is what failed. Assembly, because a C compiler may use the FPU or
 * Helium in any loop, and both are off at reset. Only instructions that ARMv6-M has too. */
#include "uaccel_board.h"

    .syntax unified
    .thumb

    .section .uaccel_vectors, "a", %progbits
/* To its own size, rounded up to a power of two. */
#if UACCEL_BOARD_INTERRUPTS <= 48
    .balign 256
#elif UACCEL_BOARD_INTERRUPTS <= 112
    .balign 512
#elif UACCEL_BOARD_INTERRUPTS <= 240
    .balign 1024
#else
    .balign 2048
#endif
    .global uaccel_vectors
uaccel_vectors:
    .word uaccel_interrupt_stack_top
    .word uaccel_reset
    .word uaccel_fault          /* 2 NMI */
    .word uaccel_fault          /* 3 hard fault */
    .word uaccel_fault          /* 4 memory management */
    .word uaccel_fault          /* 5 bus */
    .word uaccel_fault          /* 6 usage */
    .word uaccel_fault          /* 7 secure */
    .word 0, 0, 0
    .word uaccel_fault          /* 11 SVCall */
    .word uaccel_fault          /* 12 debug monitor */
    .word 0
    .word uaccel_fault          /* 14 PendSV */
    .word uaccel_systick_interrupt
    .rept UACCEL_BOARD_INTERRUPTS
    .word uaccel_external_interrupt
    .endr

    .section .text.uaccel_reset, "ax", %progbits
    .balign 4
    .global uaccel_reset
    .type uaccel_reset, %function
    .thumb_func
uaccel_reset:
    cpsid   i
#if defined(__ARM_FP) || defined(__ARM_FEATURE_MVE)
    ldr     r0, =0xE000ED88     /* CPACR: full access to CP10 and CP11 */
    ldr     r1, [r0]
    ldr     r2, =0x00F00000
    orrs    r1, r1, r2
    str     r1, [r0]
    dsb
    isb
#endif
    ldr     r0, =uaccel_interrupt_stack_top
    msr     msp, r0
    ldr     r0, =uaccel_stack_top
    msr     psp, r0
#if __ARM_ARCH >= 8
    ldr     r0, =uaccel_interrupt_stack_bottom
    msr     msplim, r0
    ldr     r0, =uaccel_stack_bottom
    msr     psplim, r0
#endif
    movs    r0, #2              /* CONTROL.SPSEL: threads use the process stack */
    msr     control, r0
    isb
    bl      uaccel_port_early_init

    ldr     r0, =uaccel_data_start
    ldr     r1, =uaccel_data_end
    ldr     r2, =uaccel_data_load
    bl      uaccel_copy
    ldr     r0, =uaccel_device_constants_start
    ldr     r1, =uaccel_device_constants_end
    ldr     r2, =uaccel_device_constants_load
    bl      uaccel_copy
    ldr     r4, =uaccel_copies_start
    ldr     r5, =uaccel_copies_end
    b       6f
5:  ldmia   r4!, {r0-r2}
    bl      uaccel_copy
6:  cmp     r4, r5
    blo     5b

    ldr     r0, =uaccel_bss_start
    ldr     r1, =uaccel_bss_end
    movs    r3, #0
    b       4f
3:  str     r3, [r0]
    adds    r0, r0, #4
4:  cmp     r0, r1
    blo     3b

    bl      uaccel_core_init
    bl      main
    ldr     r0, =uaccel_returned
    bl      uaccel_port_fault
    .size uaccel_reset, . - uaccel_reset

    .weak uaccel_port_early_init
    .type uaccel_port_early_init, %function
    .thumb_func
uaccel_port_early_init:
    bx      lr
    .size uaccel_port_early_init, . - uaccel_port_early_init

/* To the words from r0 up to r1 from those at r2; they may be in place already. */
    .type uaccel_copy, %function
    .thumb_func
uaccel_copy:
    cmp     r0, r2
    beq     2f
    b       1f
0:  ldr     r3, [r2]
    str     r3, [r0]
    adds    r0, r0, #4
    adds    r2, r2, #4
1:  cmp     r0, r1
    blo     0b
2:  bx      lr
    .size uaccel_copy, . - uaccel_copy

/* Every fault: r0 = the frame that the exception left, r1 = EXC_RETURN, r2 = the stack pointer that failed. If the
 * interrupt stack itself is nearly gone, its contents are given up. */
    .section .text.uaccel_fault, "ax", %progbits
    .balign 4
    .global uaccel_fault
    .type uaccel_fault, %function
    .thumb_func
uaccel_fault:
    cpsid   i
    mov     r1, lr
    mrs     r0, msp
    movs    r3, #4
    tst     r1, r3
    beq     1f
    mrs     r0, psp
1:  mrs     r3, msp
    ldr     r2, =uaccel_interrupt_stack_bottom + 512
    cmp     r3, r2
    bhs     2f
    ldr     r3, =uaccel_interrupt_stack_top
    msr     msp, r3
2:  bl      uaccel_report_fault
    .size uaccel_fault, . - uaccel_fault

    .section .rodata.uaccel_returned, "a", %progbits
uaccel_returned:
    .asciz "main() returned"
