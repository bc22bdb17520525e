/* Firmware that shows what a port can do, over its raw console; tests/boards/test_ports.py talks to it.
 *
 * At start-up it sends '!' and then a byte that is 0 where .data, .bss, floating point and memcpy() are as they should be.
 * A command is a letter and a 32-bit number, little endian; what it answers stands beside it below. */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "uaccel_port.h"

static uint32_t initialised[3] = {0x12345678u, 0x9ABCDEF0u, 0x0F1E2D3Cu};
static uint32_t zero[64];
static volatile float half = 0.5f;

enum { MOST = 70, ROOM = 80, UNTOUCHED = 0xEE };
static uint8_t source[ROOM], target[ROOM];

/* Whether `length` bytes from `first` on are the given ones, or those of `from`, and all others untouched. */
static bool is_written(uint32_t first, uint32_t length, const uint8_t *from, uint8_t value)
{
    bool good = true;
    for (uint32_t i = 0; i < ROOM; ++i) {
        volatile uint8_t *const byte = target + i;
        const bool within = i >= first && i - first < length;
        good = good && *byte == (!within ? UNTOUCHED : from != 0 ? from[i - first] : value);
        *byte = UNTOUCHED;
    }
    return good;
}

/* memcpy() and memset() of every length, from each place in a word to each place in one. */
static bool moves_bytes(void)
{
    for (uint32_t i = 0; i < ROOM; ++i) {
        source[i] = (uint8_t)(i * 7u + 1u);
    }
    memset(target, UNTOUCHED, ROOM);
    bool good = true;
    for (volatile uint32_t length = 0; length < MOST; ++length) {
        for (uint32_t places = 0; places < 16u; ++places) {
            const uint32_t first = 1u + places % 4u;
            const uint8_t *const from = source + places / 4u;
            good = good && memcpy(target + first, from, length) == target + first;
            good = good && is_written(first, length, from, 0);
            good = good && memset(target + first, 0xFFA5, length) == target + first;
            good = good && is_written(first, length, 0, 0xA5);
        }
    }
    return good;
}

static uint32_t start_up_faults(void)
{
    uint32_t faults = initialised[0] == 0x12345678u && initialised[2] == 0x0F1E2D3Cu ? 0u : 1u;
    for (uint32_t i = 0; i < 64u; ++i) {
        faults |= zero[i] == 0 ? 0u : 2u;
    }
    faults |= half * 3.0f == 1.5f ? 0u : 4u;
    faults |= moves_bytes() ? 0u : 8u;
    memset(initialised, 0xFF, sizeof initialised); /* a reset must bring them back */
    memset(zero, 0xFF, sizeof zero);
    return faults;
}

static void send8(uint32_t value)
{
    const uint8_t byte = (uint8_t)(value & 0xFFu);
    uaccel_port_write(&byte, 1);
}

static void send32(uint32_t value)
{
    for (uint32_t i = 0; i < 4u; ++i) {
        send8(value >> 8u * i);
    }
}

static void send64(uint64_t value)
{
    send32((uint32_t)(value & 0xFFFFFFFFu));
    send32((uint32_t)(value >> 32));
}

/* Bytes in pieces, so that the port's ring is read as the session server reads it. */
static uint32_t chunk_used, chunk_got, overruns;
static uint8_t chunk[64];

static uint8_t receive8(void)
{
    while (chunk_used == chunk_got) {
        const int32_t got = uaccel_port_read(chunk, sizeof chunk);
        overruns += got == UACCEL_PORT_OVERRUN ? 1u : 0u;
        chunk_got = got > 0 ? (uint32_t)got : 0;
        chunk_used = 0;
    }
    return chunk[chunk_used++];
}

static uint32_t receive32(void)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < 4u; ++i) {
        value |= (uint32_t)receive8() << 8u * i;
    }
    return value;
}

/* 'd' n, n bytes: a checksum of them, and how often bytes were lost. */
static void download(uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; ++i) {
        sum = sum * 31u + receive8();
    }
    send32(sum);
    send32(overruns);
}

/* 'u' n: n bytes that count. */
static void upload(uint32_t count)
{
    uint8_t bytes[64];
    for (uint32_t i = 0; i < count; i += sizeof bytes) {
        for (uint32_t j = 0; j < sizeof bytes; ++j) {
            bytes[j] = (uint8_t)((i + j) & 0xFFu);
        }
        uaccel_port_write(bytes, count - i < sizeof bytes ? count - i : (uint32_t)sizeof bytes);
    }
}

/* 'e' n, n bytes: each as it comes. */
static void echo(uint32_t count)
{
    for (uint32_t i = 0; i < count; ++i) {
        send8(receive8());
    }
}

/* Exactly 2 n instructions of loop, at least one round. */
static __attribute__((noinline)) void spin(uint32_t rounds)
{
#if defined(__riscv)
    __asm volatile("1: addi %0, %0, -1\n\tbnez %0, 1b" : "+r"(rounds));
#else
    __asm volatile(".syntax unified\n1: subs %0, %0, #1\n\tbne 1b" : "+r"(rounds)::"cc");
#endif
}

/* 'i' n: instructions that n rounds of the loop took, with the same few around them each time. */
static void count_instructions(uint32_t rounds)
{
    const uint64_t before = uaccel_port_instructions();
    spin(rounds);
    const uint64_t after = uaccel_port_instructions();
    send64(after == UACCEL_PORT_NO_COUNT ? UACCEL_PORT_NO_COUNT : after - before);
}

/* 't' n: ticks a second, ticks that n rounds took, and how often the time went back meanwhile. */
static void measure_time(uint32_t rounds)
{
    uint32_t back = 0;
    const uint64_t begin = uaccel_port_ticks();
    uint64_t last = begin;
    for (uint32_t left = rounds; left > 0; left -= left < 1000u ? left : 1000u) {
        spin(1000);
        const uint64_t now = uaccel_port_ticks();
        back += now < last ? 1u : 0u;
        last = now;
    }
    send32(uaccel_port_ticks_per_second());
    send64(last - begin);
    send32(back);
}

/* A frame that no optimisation may remove. */
static __attribute__((noinline)) uint32_t use_stack(uint32_t bytes)
{
    volatile uint8_t frame[bytes < 16u ? 16u : bytes];
    frame[0] = (uint8_t)(bytes & 0xFFu);
    return frame[0];
}

/* 's' n: stack in use after a function with n bytes of variables. */
static void measure_stack(uint32_t bytes)
{
    uaccel_port_stack_paint();
    (void)use_stack(bytes);
    send32(uaccel_port_stack_used());
}

static __attribute__((noinline)) uint32_t recurse(uint32_t depth)
{
    static volatile uint32_t deepest = 0xFFFFFFFFu;
    volatile uint32_t here[16];
    here[0] = depth;
    return depth == deepest ? 0 : recurse(depth + 1u) + here[0];
}

/* 'f' n: a fault; the report comes instead of an answer. */
static void fail(uint32_t kind)
{
    static volatile uint32_t nothing;
    switch (kind) {
    case 0:
#if defined(__riscv)
        __asm volatile(".word 0xFFFFFFFF");
#else
        __asm volatile("udf #1");
#endif
        break;
    case 1:
        send32(*(volatile uint32_t *)(uintptr_t)(nothing + SELFTEST_NOWHERE));
        break;
    case 2:
        send32(recurse(0));
        break;
    case 3:
        ((void (*)(void))(uintptr_t)(nothing + SELFTEST_NOWHERE + 1u))();
        break;
    case 4:
        send32(1000u / nothing);
        break;
    default:
        uaccel_port_fault("asked for");
        break;
    }
}

/* 'm' n: the bits of exp(n) as the C library computes it, and what errno is then, having been 1234. */
static void compute(uint32_t power)
{
    static float (*const volatile function)(float) = expf;
    uint32_t bits;
    errno = 1234;
    const float value = function((float)power);
    memcpy(&bits, &value, sizeof bits);
    send32(bits);
    send32((uint32_t)errno);
}

/* 'o' n, then anything: n rounds of the loop without reading; 4 zero bytes when they are over. */
static void ignore(uint32_t rounds)
{
    spin(rounds);
    send32(0);
}

int main(void)
{
    uaccel_port_init();
    send8('!');
    send8(start_up_faults());
    for (;;) {
        const uint8_t letter = receive8();
        const uint32_t number = receive32();
        switch (letter) {
        case 'd':
            download(number);
            break;
        case 'u':
            upload(number);
            break;
        case 'e':
            echo(number);
            break;
        case 'i':
            count_instructions(number);
            break;
        case 't':
            measure_time(number);
            break;
        case 's':
            measure_stack(number);
            break;
        case 'f':
            fail(number);
            break;
        case 'm':
            compute(number);
            break;
        case 'o':
            ignore(number);
            break;
        case 'r':
            uaccel_port_reset();
            break;
        case 'x':
            return 0;
        default:
            send8('?');
            break;
        }
    }
}
