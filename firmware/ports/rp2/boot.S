/* What the boot ROM looks for before it starts what lies in flash. */
    .syntax unified

#if __ARM_ARCH == 6
/* RP2040: the ROM copies the first 256 bytes of flash to RAM and calls them if their checksum is right, wherever that is.
 * They have the flash read as memory: command 03h, 24 bits of address, one line, which every flash chip knows at a
 * quarter of the slow clock after reset. Then they start what the vector table behind them names.
 *
 * The checksum is that of CRC-32/MPEG-2 over 252 bytes; tests/boards/test_rp2.py computes it. */
    .equ SSI, 0x18000000
    .equ CTRLR0, 0x00
    .equ CTRLR1, 0x04
    .equ ENABLE, 0x08
    .equ DIVIDER, 0x14
    .equ SPI_CTRLR0, 0xF4
    .equ FRAMES_OF_32_BITS, 31 << 16
    .equ READ_AFTER_WRITE, 3 << 8
    .equ READ_COMMAND, 0x03 << 24
    .equ COMMAND_OF_8_BITS, 2 << 8
    .equ ADDRESS_OF_24_BITS, 6 << 2

    .thumb
    .section .uaccel_boot, "ax", %progbits
    .balign 256
    .thumb_func
uaccel_boot:
    ldr     r3, boot_ssi
    movs    r0, #0
    str     r0, [r3, #ENABLE]   /* off: only then it can be set up */
    movs    r1, #4
    str     r1, [r3, #DIVIDER]
    ldr     r1, boot_frames
    str     r1, [r3, #CTRLR0]
    str     r0, [r3, #CTRLR1]   /* one frame for each read */
    ldr     r1, boot_command
    movs    r2, #SPI_CTRLR0
    str     r1, [r3, r2]
    movs    r1, #1
    str     r1, [r3, #ENABLE]

    ldr     r0, boot_vectors
    ldr     r1, boot_vtor
    str     r0, [r1]
    ldmia   r0!, {r1, r2}
    msr     msp, r1
    bx      r2

    .balign 4
boot_ssi:
    .word SSI
boot_frames:
    .word FRAMES_OF_32_BITS | READ_AFTER_WRITE
boot_command:
    .word READ_COMMAND | COMMAND_OF_8_BITS | ADDRESS_OF_24_BITS
boot_vectors:
    .word 0x10000100            /* flash begins at 0x10000000 */
boot_vtor:
    .word 0xE000ED08
    .org 252
    .word 0x678956B0
#else
/* RP2350: the ROM sets the flash up and starts the vector table at its start, if a block of these words in the first
 * 4 KiB says what the image is: a secure program for Arm. The last item tells the words of all others; the block links to
 * itself, since there is no other one. */
    .equ IMAGE_TYPE, 0x42 | 1 << 8
    .equ PROGRAM, 1 << 16
    .equ SECURE, 2 << 20
    .equ ARM, 0 << 24
    .equ RP2350, 1 << 28
    .equ LAST, 0xFF | 1 << 8

    .section .uaccel_image, "a", %progbits
    .balign 4
    .word 0xFFFFDED3
    .word IMAGE_TYPE | PROGRAM | SECURE | ARM | RP2350
    .word LAST
    .word 0
    .word 0xAB123579
#endif
