/* Instructions of a unit inside the core: R-type on CUSTOM_0. NAME_instructions.h, which uaccel writes from an
 * accelerator's description, has a function for each of them. On a CPU that is no RV32 the unit's model computes it. */
#ifndef UACCEL_INSTRUCTION_H
#define UACCEL_INSTRUCTION_H

#include <stdint.h>

/* For the functions of a model: under an emulator the instruction is counted, and not what stands in for it. */
#ifdef __ELF__
#define UACCEL_UNIT __attribute__((section(".text.uaccel_uncounted"), visibility("default")))
#else
#define UACCEL_UNIT
#endif

/* The model: what the unit answers, with the state that it keeps from one instruction to the next. `function` is
 * funct7 << 3 | funct3, as the unit is given it. */
UACCEL_UNIT int32_t uaccel_unit(uint32_t function, int32_t left, int32_t right);

#if defined(__riscv_xlen) && __riscv_xlen == 32
#define UACCEL_INSTRUCTION(name, funct3, funct7)                                                                       \
    static inline __attribute__((always_inline, unused)) int32_t name(int32_t left, int32_t right)                     \
    {                                                                                                                  \
        int32_t result;                                                                                                \
        __asm volatile(".insn r 0x0B, " #funct3 ", " #funct7 ", %0, %1, %2"                                            \
                       : "=r"(result)                                                                                  \
                       : "r"(left), "r"(right));                                                                       \
        return result;                                                                                                 \
    }
#else
#define UACCEL_INSTRUCTION(name, funct3, funct7)                                                                       \
    static inline int32_t name(int32_t left, int32_t right)                                                            \
    {                                                                                                                  \
        return uaccel_unit((funct7) << 3 | (funct3), left, right);                                                     \
    }
#endif

#endif
