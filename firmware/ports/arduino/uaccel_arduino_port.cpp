/* Any board with an Arduino core: the line is Serial. */
#include <Arduino.h>

extern "C" {
#include "uaccel_port.h"
}

#if defined(__AVR__)
/* avr-libc's: the end of variables, and of the heap where something was allocated. */
extern "C" char __heap_start;
extern "C" char *__brkval;
#endif

namespace {

const unsigned long baud = 115200;
const uint32_t microseconds = 1000000;
const uint8_t paint = 0xA5;

#if defined(__AVR__)
/* What painting itself takes, and an interrupt that comes meanwhile. */
const uintptr_t own_frame = 64;
uintptr_t caller;

uint8_t *stack_end()
{
    return reinterpret_cast<uint8_t *>(__brkval != NULL ? __brkval : &__heap_start);
}
#endif

} // namespace

void uaccel_port_init(void)
{
    Serial.begin(baud);
    while (!Serial) {
        /* boards with USB of their own wait for the host */
    }
}

int32_t uaccel_port_read(uint8_t *to, uint32_t room)
{
    uint32_t count = 0;
    while (count < room && Serial.available() > 0) {
        to[count] = static_cast<uint8_t>(Serial.read());
        count++;
    }
    return static_cast<int32_t>(count);
}

bool uaccel_port_has_arrived(void)
{
    return Serial.available() > 0;
}

void uaccel_port_write(const uint8_t *from, uint32_t count)
{
    Serial.write(from, static_cast<size_t>(count));
}

/* micros() begins anew every 71 minutes; whoever asks less often than that misses one round. */
uint64_t uaccel_port_ticks(void)
{
    static uint32_t last, rounds;
    const uint32_t now = micros();
    rounds += now < last ? 1 : 0;
    last = now;
    return static_cast<uint64_t>(rounds) << 32 | now;
}

uint32_t uaccel_port_ticks_per_second(void)
{
    return microseconds;
}

uint64_t uaccel_port_instructions(void)
{
    return UACCEL_PORT_NO_COUNT;
}

#if defined(__AVR__)

__attribute__((noinline)) void uaccel_port_stack_paint(void)
{
    caller = SP;
    for (uint8_t *byte = stack_end(); byte < reinterpret_cast<uint8_t *>(caller - own_frame); ++byte) {
        *static_cast<volatile uint8_t *>(byte) = paint;
    }
}

uint32_t uaccel_port_stack_used(void)
{
    const uint8_t *byte = stack_end();
    while (reinterpret_cast<uintptr_t>(byte) < caller && *byte == paint) {
        ++byte;
    }
    return static_cast<uint32_t>(caller - reinterpret_cast<uintptr_t>(byte));
}

#else

/* Where the stack ends is the core's secret: 0 bytes are told. */
void uaccel_port_stack_paint(void)
{
    (void)paint;
}

uint32_t uaccel_port_stack_used(void)
{
    return 0;
}

#endif

void uaccel_port_reset(void)
{
    Serial.flush();
#if defined(__AVR__)
    noInterrupts();
    __asm__ volatile("jmp 0");
#elif defined(ESP8266) || defined(ESP32)
    ESP.restart();
#elif defined(__arm__)
    NVIC_SystemReset();
#endif
    for (;;) {
        /* where none of these is known, the board's button starts it again */
    }
}

void uaccel_port_fault(const char *text)
{
    uaccel_server_fault(text);
    for (;;) {
    }
}
