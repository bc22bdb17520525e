/* A UF2 file: blocks of 512 bytes, each with 256 of the image and the address that they belong to. */
    .section .uf2, "a"
    .set block, 0
    .rept BLOCKS
    .word 0x0A324655, 0x9E5D5157
    .word 0x2000                    /* the last word of the head is a family of chips */
    .word 0x10000000 + 256 * block
    .word 256, block, BLOCKS, FAMILY
    .incbin SECTORS, 256 * block, 256
    .zero 512 - 32 - 256 - 4
    .word 0x0AB16F30
    .set block, block + 1
    .endr
