/* From reset to main() on RV32 in machine mode, and the way into and out of traps.
 *
 * main() runs on its own stack, traps on another (mscratch holds whichever is not in use), so that a fault can be
 * reported when the stack is what failed. */
#include "uaccel_board.h"

#ifdef __riscv_flen
#define FPU_ON 0x2000           /* mstatus.FS */
#define FRAME_BYTES (64 + 20 * 8)
#if __riscv_flen == 64
#define STORE_F fsd
#define LOAD_F fld
#else
#define STORE_F fsw
#define LOAD_F flw
#endif
/* Every FPU register that a C function may change. */
    .macro for_each_float operation
    .set offset, 64
    .irp register, ft0, ft1, ft2, ft3, ft4, ft5, ft6, ft7, ft8, ft9, ft10, ft11, fa0, fa1, fa2, fa3, fa4, fa5, fa6, fa7
    \operation \register, offset(sp)
    .set offset, offset + 8
    .endr
    .endm
#else
#define FPU_ON 0
#define FRAME_BYTES 64
#endif
#ifdef UACCEL_INSTRUCTIONS
/* What C functions keep: a custom instruction may name it (riscv_virt/instructions.c). */
#define KEPT_BYTES 48
    .macro for_each_kept operation
    .set offset, FRAME_BYTES
    .irp register, s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11
    \operation \register, offset(sp)
    .set offset, offset + 4
    .endr
    .endm
#else
#define KEPT_BYTES 0
#endif
#ifdef UACCEL_BOARD_HAS_RVV
#define VECTOR_ON 0x600         /* mstatus.VS */
#else
#define VECTOR_ON 0
#endif

    .section .uaccel_vectors, "ax", @progbits
    .global uaccel_reset
    .type uaccel_reset, @function
uaccel_reset:
    csrw    mie, zero
    csrci   mstatus, 8
#if FPU_ON + VECTOR_ON
    li      t0, FPU_ON + VECTOR_ON
    csrs    mstatus, t0
#endif
    .option push
    .option norelax
    la      gp, __global_pointer$
    .option pop
    la      tp, uaccel_tls_start
    la      t0, uaccel_trap
    csrw    mtvec, t0
    la      t0, uaccel_interrupt_stack_top
    csrw    mscratch, t0
    la      sp, uaccel_stack_top
    call    uaccel_port_early_init

    la      t0, uaccel_data_start
    la      t1, uaccel_data_end
    la      t2, uaccel_data_load
    jal     uaccel_copy
    la      t0, uaccel_device_constants_start
    la      t1, uaccel_device_constants_end
    la      t2, uaccel_device_constants_load
    jal     uaccel_copy
    la      t4, uaccel_copies_start
    la      t5, uaccel_copies_end
    j       6f
5:  lw      t0, 0(t4)
    lw      t1, 4(t4)
    lw      t2, 8(t4)
    addi    t4, t4, 12
    jal     uaccel_copy
6:  bltu    t4, t5, 5b

    la      t0, uaccel_bss_start
    la      t1, uaccel_bss_end
    j       4f
3:  sw      zero, 0(t0)
    addi    t0, t0, 4
4:  bltu    t0, t1, 3b

    call    uaccel_core_init
    call    main
    la      a0, uaccel_returned
    call    uaccel_port_fault
    .size uaccel_reset, . - uaccel_reset

    .weak uaccel_port_early_init
    .type uaccel_port_early_init, @function
uaccel_port_early_init:
    ret
    .size uaccel_port_early_init, . - uaccel_port_early_init

/* To the words from t0 up to t1 from those at t2; they may be in place already. */
    .type uaccel_copy, @function
uaccel_copy:
    beq     t0, t2, 2f
    j       1f
0:  lw      t3, 0(t2)
    sw      t3, 0(t0)
    addi    t0, t0, 4
    addi    t2, t2, 4
1:  bltu    t0, t1, 0b
2:  ret
    .size uaccel_copy, . - uaccel_copy

    .section .text.uaccel_uncounted, "ax", @progbits
    .balign 64                  /* some cores keep modes in the low bits of mtvec */
    .type uaccel_trap, @function
uaccel_trap:
    csrrw   sp, mscratch, sp
    addi    sp, sp, -(FRAME_BYTES + KEPT_BYTES)
    sw      ra, 0(sp)
    sw      a0, 4(sp)
    sw      a1, 8(sp)
    sw      a2, 12(sp)
    sw      a3, 16(sp)
    sw      a4, 20(sp)
    sw      a5, 24(sp)
    sw      a6, 28(sp)
    sw      a7, 32(sp)
    sw      t0, 36(sp)
    sw      t1, 40(sp)
    sw      t2, 44(sp)
    sw      t3, 48(sp)
    sw      t4, 52(sp)
    sw      t5, 56(sp)
    sw      t6, 60(sp)
#if FPU_ON
    for_each_float STORE_F
#endif
#if KEPT_BYTES
    for_each_kept sw
#endif
    csrr    a0, mcause
    mv      a1, sp
    call    uaccel_handle_trap
#if FPU_ON
    for_each_float LOAD_F
#endif
#if KEPT_BYTES
    for_each_kept lw
#endif
    lw      ra, 0(sp)
    lw      a0, 4(sp)
    lw      a1, 8(sp)
    lw      a2, 12(sp)
    lw      a3, 16(sp)
    lw      a4, 20(sp)
    lw      a5, 24(sp)
    lw      a6, 28(sp)
    lw      a7, 32(sp)
    lw      t0, 36(sp)
    lw      t1, 40(sp)
    lw      t2, 44(sp)
    lw      t3, 48(sp)
    lw      t4, 52(sp)
    lw      t5, 56(sp)
    lw      t6, 60(sp)
    addi    sp, sp, FRAME_BYTES + KEPT_BYTES
    csrrw   sp, mscratch, sp
    mret
    .size uaccel_trap, . - uaccel_trap

    .section .rodata.uaccel_returned, "a", @progbits
uaccel_returned:
    .asciz "main() returned"
