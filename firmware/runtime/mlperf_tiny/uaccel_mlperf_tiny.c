/* Firmware that speaks MLPerf Tiny's serial protocol, in the place of the session server: commands end with '%', every
 * answer with "m-ready". Performance and accuracy mode, at the console's speed; energy mode where the project has a pin
 * for it. What it says is fixed by the benchmark.
 *
 * The project's header uaccel_mlperf_tiny.h says which of the benchmark's models this is and what its data mean. */
#include "uaccel_mlperf_tiny.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "uaccel_model.h"
#include "uaccel_port.h"
#include "uaccel_server.h"

enum { COMMAND_CHARACTERS = 80, DIGITS = 20, WARMUPS = 10 };

/* What the benchmark's data mean to the model. */
enum { AS_THEY_ARE, IMAGES, REAL_NUMBERS };

static uint8_t data[UACCEL_MLPERF_DATA_BYTES];
static uint32_t wanted, loaded;
static char command[COMMAND_CHARACTERS + 1];
static uint32_t length;

static void say(const char *text)
{
    uaccel_port_write((const uint8_t *)text, (uint32_t)strlen(text));
}

static void say_number(uint64_t value, uint32_t digits)
{
    char text[DIGITS + 1];
    uint32_t at = DIGITS;
    text[at] = 0;
    do {
        text[--at] = (char)('0' + (char)(value % 10u));
        value /= 10u;
    } while (at > 0 && (value != 0 || DIGITS - at < digits));
    say(text + at);
}

/* As "%0.3f" has it, halves to the even digit; what is beyond the largest number is that number. */
static void say_real(float value)
{
    if (value < 0.0f) {
        say("-");
        value = -value;
    }
    const double scaled = value < 1e15f ? (double)value * 1000.0 : 1e18;
    uint64_t thousandths = (uint64_t)scaled;
    const double rest = scaled - (double)thousandths;
    thousandths += rest > 0.5 || (!(rest < 0.5) && thousandths % 2u != 0) ? 1u : 0u;
    say_number(thousandths / 1000u, 1);
    say(".");
    say_number(thousandths % 1000u, 3);
}

static void say_in_brackets(const char *before, const char *text)
{
    say(before);
    say("[");
    say(text);
    say("]\r\n");
}

#ifdef UACCEL_MLPERF_ENERGY
#define UACCEL_MLPERF_MODE "energy"
/* A power monitor sees the pin rise where other modes tell a time: it is low for a millisecond before. */
static void say_time(void)
{
    const uint64_t begin = uaccel_port_ticks(), pulse = uaccel_port_ticks_per_second() / 1000u;
    uaccel_mlperf_tiny_pin(0);
    while (uaccel_port_ticks() - begin < pulse) {
    }
    uaccel_mlperf_tiny_pin(1);
}
#else
#define UACCEL_MLPERF_MODE "performance"
static void say_time(void)
{
    const uint64_t ticks = uaccel_port_ticks(), second = uaccel_port_ticks_per_second();
    const uint64_t time = second == 0 ? 0 : ticks / second * 1000000u + ticks % second * 1000000u / second;
    say("m-lap-us-");
    say_number(time, 1);
    say("\r\n");
}
#endif

/* ------------------------------------------------------------------------------------------------ data and results */

static float real_input(uint32_t i)
{
    float value;
    memcpy(&value, data + i * sizeof value, sizeof value);
    return value;
}

static UACCEL_MLPERF_INPUT_TYPE quantised(float value)
{
    const float steps = value / UACCEL_MLPERF_INPUT_SCALE;
    const float rounded = steps + (steps < 0.0f ? -0.5f : 0.5f);
    const float element = (float)(int32_t)(rounded < -1e6f ? -1e6f : rounded > 1e6f ? 1e6f : rounded) +
                          (float)UACCEL_MLPERF_INPUT_ZERO_POINT;
    const float lowest = (float)UACCEL_MLPERF_INPUT_LOWEST, highest = (float)UACCEL_MLPERF_INPUT_HIGHEST;
    return (UACCEL_MLPERF_INPUT_TYPE)(element < lowest ? lowest : element > highest ? highest : element);
}

static void load_input(void)
{
    UACCEL_MLPERF_INPUT_TYPE *const input = uaccel_model.inputs[0].data;
    if (UACCEL_MLPERF_DATA == REAL_NUMBERS) {
        for (uint32_t i = 0; i < UACCEL_MLPERF_INPUT_COUNT; ++i) {
            input[i] = quantised(real_input(i));
        }
        return;
    }
    memcpy(input, data, UACCEL_MLPERF_DATA_BYTES);
    uint8_t *const bytes = (uint8_t *)input;
    for (uint32_t i = 0; UACCEL_MLPERF_DATA == IMAGES && i < UACCEL_MLPERF_DATA_BYTES; ++i) {
        bytes[i] ^= 0x80u; /* pixels from 0 on */
    }
}

static float real_output(uint32_t i)
{
    const UACCEL_MLPERF_OUTPUT_TYPE *const output = uaccel_model.outputs[0].data;
    return ((float)output[i] - (float)UACCEL_MLPERF_OUTPUT_ZERO_POINT) * UACCEL_MLPERF_OUTPUT_SCALE;
}

/* How far an autoencoder's output is from its input: the mean of the squares. */
static float error_of_output(void)
{
    float sum = 0.0f;
    for (uint32_t i = 0; i < UACCEL_MLPERF_OUTPUT_COUNT; ++i) {
        const float difference = real_output(i) - real_input(i);
        sum += difference * difference;
    }
    return sum / (float)UACCEL_MLPERF_OUTPUT_COUNT;
}

static void say_results(void)
{
    say("m-results-[");
    if (UACCEL_MLPERF_DATA == REAL_NUMBERS) {
        say_real(error_of_output());
    }
    for (uint32_t i = 0; UACCEL_MLPERF_DATA != REAL_NUMBERS && i < UACCEL_MLPERF_OUTPUT_COUNT; ++i) {
        say(i == 0 ? "" : ",");
        say_real(real_output(i));
    }
    say("]\r\n");
}

/* ------------------------------------------------------------------------------------------------------- inferences */

static int32_t run(uint64_t count)
{
    int32_t status = 0;
    while (count-- > 0 && status == 0) {
        if (uaccel_model.workspace_io != 0) {
            load_input(); /* a run uses its bytes up */
        }
        if (uaccel_model.reset != NULL) {
            uaccel_model.reset();
        }
        status = uaccel_model.run();
    }
    return status;
}

static void infer(uint64_t count, uint64_t warmups)
{
    if (loaded != UACCEL_MLPERF_DATA_BYTES) {
        say("e-[Input has ");
        say_number(loaded, 1);
        say(" bytes, wanted ");
        say_number(UACCEL_MLPERF_DATA_BYTES, 1);
        say("]\r\n");
        return;
    }
    load_input();
    say("m-warmup-start-");
    say_number(warmups, 1);
    say("\r\n");
    int32_t status = run(warmups);
    say("m-warmup-done\r\nm-infer-start-");
    say_number(count, 1);
    say("\r\n");
    say_time();
    status = status == 0 ? run(count) : status;
    say_time();
    say("m-infer-done\r\n");
    if (status != 0) {
        say("e-[The model failed]\r\n");
        return;
    }
    say_results();
}

/* --------------------------------------------------------------------------------------------------------- commands */

/* The next word of the command, which ends at a blank; NULL where there is none. */
static char *next_word(char **at)
{
    char *word = *at;
    while (*word == ' ') {
        ++word;
    }
    if (*word == 0) {
        return NULL;
    }
    char *end = word;
    while (*end != 0 && *end != ' ') {
        ++end;
    }
    *at = *end == 0 ? end : end + 1;
    *end = 0;
    return word;
}

/* As atoi has it, but for what no counter holds; -1 for a number below 0. */
static int64_t number(const char *word)
{
    int64_t value = 0;
    if (*word == '-') {
        return -1;
    }
    for (; *word >= '0' && *word <= '9' && value < INT32_MAX; ++word) {
        value = value * 10 + (*word - '0');
    }
    return value < INT32_MAX ? value : INT32_MAX;
}

static void take_infer(char *rest)
{
    const char *const first = next_word(&rest), *const second = next_word(&rest);
    const int64_t count = first == NULL ? 1 : number(first), warmups = second == NULL ? WARMUPS : number(second);
    if (count <= 0) {
        say("e-[Inference iterations must be >0]\r\n");
    } else if (warmups < 0) {
        say("e-[Inference warmup must be >=0]\r\n");
    } else {
        infer((uint64_t)count, (uint64_t)warmups);
    }
}

static void begin_load(char *rest)
{
    const char *const word = next_word(&rest);
    const int64_t count = word == NULL ? -1 : number(word);
    if (word == NULL) {
        say("e-[Command 'db load' requires the # of bytes]\r\n");
    } else if (count <= 0) {
        say("e-[Command 'db load' must be >0 bytes]\r\n");
    } else if (count > UACCEL_MLPERF_DATA_BYTES) {
        say("e-[Supplied buffer size ");
        say_number((uint64_t)count, 1);
        say(" exceeds maximum of ");
        say_number(UACCEL_MLPERF_DATA_BYTES, 1);
        say("]\r\n");
    } else {
        wanted = (uint32_t)count;
        loaded = 0;
        say("m-[Expecting ");
        say_number(wanted, 1);
        say(" bytes]\r\n");
    }
}

/* -1: no digit. */
static int32_t digit(char character)
{
    if (character >= '0' && character <= '9') {
        return character - '0';
    }
    const char small = (char)(character | 0x20);
    return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

static void take_bytes(const char *word)
{
    if (strlen(word) % 2u != 0) {
        say("e-[Insufficent number of hex digits]\r\n"); /* as the benchmark spells it */
        return;
    }
    for (; *word != 0 && loaded < wanted; word += 2) {
        const int32_t high = digit(word[0]), low = digit(word[1]);
        if (high < 0 || low < 0) {
            const char pair[] = {word[0], word[1], 0};
            say("e-[Invalid hex digit '");
            say(pair);
            say("']\r\n");
            return;
        }
        data[loaded++] = (uint8_t)(high << 4 | low);
        if (loaded == wanted) {
            say("m-load-done\r\n");
        }
    }
}

static void say_buffer(void)
{
    for (uint32_t i = 0; i < loaded; ++i) {
        const char pair[] = {"0123456789abcdef"[data[i] >> 4], "0123456789abcdef"[data[i] & 15u], 0};
        say(i % 8u == 0 ? "m-buffer-" : "-");
        say(pair);
        say(i % 8u == 7u || i + 1u == loaded ? "\r\n" : "");
    }
}

static void take_db(char *rest)
{
    const char *const word = next_word(&rest);
    if (word == NULL) {
        say("e-[Command 'db' requires a subcommand]\r\n");
    } else if (strcmp(word, "load") == 0) {
        begin_load(rest);
    } else if (strcmp(word, "print") == 0) {
        say_buffer();
    } else {
        take_bytes(word);
    }
}

static void take_command(char *rest)
{
    const char *const word = next_word(&rest);
    if (word == NULL) {
        say("e-[Unknown command: ]\r\n");
    } else if (strcmp(word, "name") == 0) {
        say_in_brackets("m-name-dut-", "uaccel");
    } else if (strcmp(word, "timestamp") == 0) {
        say_time();
    } else if (strcmp(word, "profile") == 0) {
        say_in_brackets("m-profile-", "ULPMark for tinyML Firmware V0.0.1");
        say_in_brackets("m-model-", UACCEL_MLPERF_MODEL);
    } else if (strcmp(word, "help") == 0) {
        say("name, timestamp, profile, db load N, db HEX, db print, infer N W, results\r\n");
    } else if (strcmp(word, "db") == 0) {
        take_db(rest);
    } else if (strcmp(word, "infer") == 0) {
        take_infer(rest);
    } else if (strcmp(word, "results") == 0) {
        say_results();
    } else {
        say("e-[Unknown command: ");
        say(word);
        say("]\r\n");
    }
    say("m-ready\r\n");
}

static void take(char character)
{
    if (character == '%') {
        command[length] = 0;
        length = 0;
        take_command(command);
    } else if (character != '\r' && character != '\n') {
        command[length] = character;
        length += length < COMMAND_CHARACTERS ? 1u : 0u;
    }
}

void uaccel_server_fault(const char *text)
{
    say("e-[");
    say(text);
    say("]\r\n");
}

void uaccel_serve(void)
{
    uint8_t arrived[16];
    say("m-timestamp-mode-" UACCEL_MLPERF_MODE "\r\n");
    say_time();
    say("m-init-done\r\nm-ready\r\n");
    for (;;) {
        const int32_t count = uaccel_port_read(arrived, sizeof arrived);
        if (count == UACCEL_PORT_CLOSED) {
            return;
        }
        if (count == UACCEL_PORT_OVERRUN) {
            say("e-[Bytes were lost]\r\n");
        }
        for (int32_t i = 0; i < count; ++i) {
            take((char)arrived[i]);
        }
    }
}
