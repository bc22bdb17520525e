/* What every kernel header needs: fixed-width types and how a kernel is declared.
 *
 * A kernel is a function over a constant parameter structure. It is inlined into the layer that calls it, so that
 * the compiler sees shapes, strides and zero points as constants, folds them and unrolls; or it is compiled once and
 * shared, where its inner loops are written by hand.
 * A layer is never inlined: many loop nests in one function cost it registers, and so each layer takes the same
 * instructions whatever stands beside it, observed or not. */
#ifndef UACCEL_KERNEL_H
#define UACCEL_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Raised whenever a kernel's interface changes; generated code refuses another number. */
#define UACCEL_KERNEL_ABI 7

#if defined(__GNUC__)
#define UACCEL_KERNEL static inline __attribute__((always_inline, unused))
/* Not even looked into from outside, where that can be had: GCC 12's -fipa-cp drops stores that later layers read. */
#ifdef __has_attribute
#if __has_attribute(noipa)
#define UACCEL_OPAQUE __attribute__((noipa))
#endif
#endif
#ifndef UACCEL_OPAQUE
#define UACCEL_OPAQUE __attribute__((noinline))
#endif
#define UACCEL_LAYER static UACCEL_OPAQUE
/* Keeps compilers from adding code of their own to assembly, which would change registers that it reads: the checks of
 * -fstack-protector-all, the calls of -finstrument-functions and -pg, the counters of --coverage. */
#ifdef __has_attribute
#if __has_attribute(no_stack_protector)
#define UACCEL_NO_STACK_CHECK no_stack_protector,
#elif !defined(__clang__)
#define UACCEL_NO_STACK_CHECK optimize("no-stack-protector"),
#endif
#if __has_attribute(no_profile_instrument_function)
#define UACCEL_NO_COUNTERS no_profile_instrument_function,
#endif
#endif
#ifndef UACCEL_NO_STACK_CHECK
#define UACCEL_NO_STACK_CHECK
#endif
#ifndef UACCEL_NO_COUNTERS
#define UACCEL_NO_COUNTERS
#endif
/* A function whose body is assembly: it finds its parameters where the calling convention has them. It begins at a
 * multiple of 4, since ADR counts from one, and compilers see to 2 where they save flash (-Os, clang). */
#define UACCEL_ASSEMBLY                                                                                              \
    static UACCEL_OPAQUE __attribute__((UACCEL_NO_STACK_CHECK UACCEL_NO_COUNTERS no_instrument_function, naked,      \
                                        unused, aligned(4)))
/* Around those functions: they find their parameters in registers, which is no reason for a warning. */
#define UACCEL_ASSEMBLY_BEGIN _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wunused-parameter\"")
#define UACCEL_ASSEMBLY_END _Pragma("GCC diagnostic pop")
/* Forgets an assembler's macros, whose names others use, too. */
#define UACCEL_PURGE(names) ".irp name, " names "\n.purgem \\name\n.endr\n"
/* A kernel that is compiled once and serves all its layers: its loops gain nothing from constants. */
#define UACCEL_SHARED static __attribute__((noinline, unused))
#else
#define UACCEL_SHARED static inline /* or an unused one would be a warning */
#define UACCEL_KERNEL static inline
#define UACCEL_LAYER static
#endif

/* Begins the declaration of every array that another file declares too, or whose elements are read by words: both say
 * the same alignment. Of an array without one a compiler may assume more than it has: of those of 16 bytes and more the
 * x86-64 ABI has it assume 16, and clang -O3 then reads with instructions that trap on less. */
#ifndef UACCEL_ALIGNED
#if defined(__GNUC__)
#define UACCEL_ALIGNED(bytes) __attribute__((aligned(bytes)))
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define UACCEL_ALIGNED(bytes) _Alignas(bytes)
#else
#error "define UACCEL_ALIGNED(bytes) as what aligns an array with this compiler, or compile as C11"
#endif
#endif

/* Where constants lie; define it to place them, for example __attribute__((section(".qspi"))). */
#ifndef UACCEL_CONSTANT
#define UACCEL_CONSTANT
#endif

/* The same for each part of constants that are divided, by its name. */
#if !defined(UACCEL_CONSTANT_POOL) && defined(UACCEL_CONSTANT_POOL_SECTION)
#define UACCEL_CONSTANT_POOL(name) __attribute__((section(UACCEL_CONSTANT_POOL_SECTION #name)))
#elif !defined(UACCEL_CONSTANT_POOL)
#define UACCEL_CONSTANT_POOL(name) UACCEL_CONSTANT
#endif

/* Where constants lie that an accelerator reads by itself; define it to place them in memory that it reaches. */
#ifndef UACCEL_DEVICE_CONSTANT
#define UACCEL_DEVICE_CONSTANT
#endif

/* Where the workspace lies; define it to place it, for example __attribute__((section(".dtcm"))). */
#ifndef UACCEL_WORKSPACE
#define UACCEL_WORKSPACE
#endif

/* The same for each part of a divided workspace, by its name. */
#if !defined(UACCEL_WORKSPACE_POOL) && defined(UACCEL_WORKSPACE_POOL_SECTION)
#define UACCEL_WORKSPACE_POOL(name) __attribute__((section(UACCEL_WORKSPACE_POOL_SECTION #name)))
#elif !defined(UACCEL_WORKSPACE_POOL)
#define UACCEL_WORKSPACE_POOL(name) UACCEL_WORKSPACE
#endif

#define UACCEL_STATIC_ASSERT(condition, name) typedef char uaccel_assert_##name[(condition) ? 1 : -1]

/* What kernels and generated code rely on, where C99 leaves a compiler the choice; docs/generated-code.md tells why. */
UACCEL_STATIC_ASSERT((unsigned char)-1 == 255, bytes_have_8_bits);
UACCEL_STATIC_ASSERT(sizeof(int) == 4 || sizeof(int) == 2, int_has_32_or_16_bits);
UACCEL_STATIC_ASSERT((-1 & 3) == 3, negative_numbers_are_two_s_complements);
UACCEL_STATIC_ASSERT(-7 >> 1 == -4 && INT64_C(-7) >> 1 == -4, right_shifts_keep_the_sign);
UACCEL_STATIC_ASSERT((int8_t)0x180 == -128 && (int32_t)0x80000000u == INT32_MIN, casts_keep_the_low_bits);

/* Where assembly finds a field: beside each structure that it reads. */
#define UACCEL_AT(type, field, offset) \
    UACCEL_STATIC_ASSERT(offsetof(struct type, field) == (offset), type##_##field)
/* Four words in a row. */
#define UACCEL_AT4(type, offset, a, b, c, d)                 \
    UACCEL_AT(type, a, offset); UACCEL_AT(type, b, (offset) + 4); \
    UACCEL_AT(type, c, (offset) + 8); UACCEL_AT(type, d, (offset) + 12)

/* A loop variable and every extent: at most 2^31 elements in a tensor. */
typedef int32_t uaccel_index;

/* The images, NHWC, that a kernel reads and writes, and the windows that it lays over the one for each pixel of the
 * other. */
struct uaccel_geometry {
    uaccel_index batch, in_height, in_width, in_channels;
    uaccel_index out_height, out_width, out_channels;
    uaccel_index kernel_height, kernel_width;
    uaccel_index stride_height, stride_width, dilation_height, dilation_width;
    uaccel_index pad_top, pad_left;
};

/* One of several nested loops, whose extents are in the structure. */
#define UACCEL_LOOP(i, level) for (uaccel_index i = 0; i < p->extents[level]; ++i)

/* All but the innermost, and the element of a tensor with these strides at which they are. */
#define UACCEL_OUTER_LOOPS UACCEL_LOOP(a, 0) UACCEL_LOOP(b, 1) UACCEL_LOOP(c, 2) UACCEL_LOOP(d, 3) UACCEL_LOOP(e, 4)
#define UACCEL_OUTER_AT(s) (a * (s)[0] + b * (s)[1] + c * (s)[2] + d * (s)[3] + e * (s)[4])

#endif
