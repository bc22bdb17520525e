/* A device model on its own, and in the rack: registers, memory, faults. No driver, no HAL. */
#include "unit.h"

#include <stdint.h>
#include <string.h>

#include "rack.h"

enum { IDENTITY = 0x00, VERSION = 0x04, START = 0x08, STATUS = 0x0C, SOURCE = 0x10, TARGET = 0x14, COUNT = 0x18, VALUE = 0x1C };
enum { DONE = 1, FAILED = 2, REFUSED = 4 };

#define MEMORY_AT 0x1000u
#define ALL_ONES 0xFFFFFFFFu

extern const struct uaccel_device_model adder_device;
struct uaccel_rack_device uaccel_rack[] = {{.model = &adder_device}};
const uint32_t uaccel_rack_count = 1;

static uint8_t memory[64];
static int32_t line;

static int32_t read_memory(void *context, uint32_t address, void *to, uint32_t bytes)
{
    (void)context;
    if (address < MEMORY_AT || address - MEMORY_AT > sizeof memory - bytes) {
        return -1;
    }
    memcpy(to, memory + (address - MEMORY_AT), bytes);
    return 0;
}

static int32_t write_memory(void *context, uint32_t address, const void *from, uint32_t bytes)
{
    (void)context;
    if (address < MEMORY_AT || address - MEMORY_AT > sizeof memory - bytes) {
        return -1;
    }
    memcpy(memory + (address - MEMORY_AT), from, bytes);
    return 0;
}

static void interrupt(void *context, int32_t level)
{
    (void)context;
    line = level;
}

static const struct uaccel_bus bus = {NULL, read_memory, write_memory, interrupt, NULL, NULL, NULL};

/* A job of 20 bytes; returns the status register. */
static uint32_t job(uint32_t source)
{
    struct uaccel_rack_device *const adder = uaccel_rack_find("adder");
    for (uint32_t i = 0; i < sizeof memory; ++i) {
        memory[i] = (uint8_t)i;
    }
    uaccel_rack_write(adder, SOURCE, source);
    uaccel_rack_write(adder, TARGET, MEMORY_AT + 32);
    uaccel_rack_write(adder, COUNT, 20);
    uaccel_rack_write(adder, VALUE, 250);
    uaccel_rack_write(adder, START, 1);
    return uaccel_rack_read(adder, STATUS);
}

static void test_a_job(void)
{
    uaccel_rack_begin(&bus);
    CHECK_EQ(line, 0);
    CHECK_EQ(job(MEMORY_AT), DONE);
    CHECK_EQ(line, 1);
    for (uint32_t i = 0; i < sizeof memory; ++i) {
        CHECK_EQ(memory[i], i < 32 || i >= 52 ? i : (i - 32 + 250) % 256);
    }
    CHECK_EQ(adder_device.cycles(adder_device.state), 20 + 12);
}

static bool is_first(void *context, uint32_t address)
{
    (void)context;
    return address == MEMORY_AT;
}

static void test_where_constants_lie(void)
{
    struct uaccel_bus told = bus;
    struct uaccel_rack_device *const adder = uaccel_rack_find("adder");
    uaccel_rack_begin(&bus);
    CHECK_EQ(adder->bus.constant == NULL, true);
    told.constant = is_first;
    uaccel_rack_begin(&told);
    CHECK_EQ(adder->bus.constant(adder->bus.context, MEMORY_AT), true);
    CHECK_EQ(adder->bus.constant(adder->bus.context, MEMORY_AT + 1), false);
    uaccel_rack_begin(&bus);
}

static void test_memory_that_is_not_there(void)
{
    uaccel_rack_reset();
    CHECK_EQ(job(MEMORY_AT + 50), DONE | REFUSED);
    CHECK_EQ(job(0), DONE | REFUSED);
    CHECK_EQ(job(MEMORY_AT), DONE);
}

static void test_registers_that_are_not_there(void)
{
    struct uaccel_rack_device *const adder = uaccel_rack_find("adder");
    CHECK(uaccel_rack_find("adde") == NULL);
    CHECK_EQ(uaccel_rack_read(adder, adder_device.window - 4), 20 + 12);
    CHECK_EQ(uaccel_rack_read(adder, adder_device.window), ALL_ONES);
    CHECK_EQ(uaccel_rack_read(adder, ALL_ONES - 3), ALL_ONES);
    CHECK_EQ(uaccel_rack_read(adder, IDENTITY + 1), ALL_ONES);
    uaccel_rack_write(adder, adder_device.window, 1);
    uaccel_rack_write(adder, START + 2, 1);
    CHECK_EQ(uaccel_rack_read(adder, IDENTITY), 0x41444452);
}

/* The status registers of three jobs one after the other. */
static void check_fault(const char *fault, uint32_t first, uint32_t second, uint32_t third)
{
    const uint32_t wanted[] = {first, second, third};
    CHECK(uaccel_rack_let_fail(fault) == NULL);
    for (int round = 0; round < 2; ++round) {
        uaccel_rack_reset();
        for (int i = 0; i < 3; ++i) {
            const uint32_t seen = job(MEMORY_AT);
            if (seen != wanted[i]) {
                fprintf(stderr, "%s, job %d of round %d:\n", fault, i, round);
            }
            CHECK_EQ(seen, wanted[i]);
        }
    }
    uaccel_rack[0].fault = UACCEL_FAULT_NONE;
}

static void test_faults(void)
{
    check_fault("adder:hang", 0, 0, 0);
    check_fault("adder:hang@3", DONE, DONE, 0);
    check_fault("adder:error@2", DONE, DONE | FAILED, DONE | FAILED);
    check_fault("adder:vanish", ALL_ONES, ALL_ONES, ALL_ONES);
    check_fault("adder:vanish@2", DONE, ALL_ONES, ALL_ONES);
    check_fault("adder:dma", DONE | REFUSED, DONE | REFUSED, DONE | REFUSED);
    check_fault("adder:dma@5", DONE, DONE | REFUSED, DONE | REFUSED); /* a job has four accesses */
    check_fault("adder:dma@4,adder:hang@3", DONE, DONE, 0);           /* the last word counts */
    check_fault("adder:hang@1-1", 0, DONE, DONE);
    check_fault("adder:error@2-2", DONE, DONE | FAILED, DONE);
    check_fault("adder:vanish@1-2", ALL_ONES, ALL_ONES, DONE);
    check_fault("adder:dma@2-3", DONE | REFUSED, DONE | REFUSED, DONE); /* a refused job ends at once */
    check_fault("adder:version", DONE, DONE, DONE);
    check_fault("", DONE, DONE, DONE);
}

static void test_another_version(void)
{
    CHECK_EQ(uaccel_rack_read(&uaccel_rack[0], VERSION), 0x00010000);
    CHECK(uaccel_rack_let_fail("adder:version") == NULL);
    uaccel_rack_reset();
    CHECK_EQ(uaccel_rack_read(&uaccel_rack[0], VERSION), 0x00020000);
    uaccel_rack[0].fault = UACCEL_FAULT_NONE;
    uaccel_rack_reset();
    CHECK_EQ(uaccel_rack_read(&uaccel_rack[0], VERSION), 0x00010000);
}

static void check_refused(const char *text, const char *words)
{
    const char *const seen = uaccel_rack_let_fail(text);
    if (seen == NULL || strstr(seen, words) == NULL) {
        fprintf(stderr, "'%s': %s\n", text, seen == NULL ? "nothing is said" : seen);
    }
    CHECK(seen != NULL && strstr(seen, words) != NULL);
}

static void test_texts_that_are_wrong(void)
{
    check_refused("adder", "wanted NAME:KIND or NAME:KIND@N");
    check_refused(",", "wanted NAME:KIND or NAME:KIND@N");
    check_refused("adder:hang,,", "wanted NAME:KIND or NAME:KIND@N");
    check_refused("subber:hang", "no device of that name");
    check_refused("adde:hang", "no device of that name");
    check_refused("adder:", "none of hang");
    check_refused("adder:hangs", "none of hang");
    check_refused("adder:hang@", "no number");
    check_refused("adder:hang@0", "no number");
    check_refused("adder:hang@1x", "no number");
    check_refused("adder:hang@1000000000", "no number");
    check_refused("adder:hang@2-1", "two of them in order");
    check_refused("adder:hang@1-", "two of them in order");
    check_refused("adder:hang@-1", "two of them in order");
    check_refused("adder:version@1", "takes no @N");
}

static void test_a_model_that_cannot_be_made_to_fail(void)
{
    struct uaccel_device_model plain = adder_device;
    plain.inject = NULL;
    uaccel_rack[0].model = &plain;
    check_refused("adder:hang", "has no inject function");
    check_refused("adder:version", "has no inject function");
    check_fault("adder:vanish@2", DONE, ALL_ONES, ALL_ONES);
    uaccel_rack[0].model = &adder_device;
}

int main(void)
{
    test_a_job();
    test_where_constants_lie();
    test_memory_that_is_not_there();
    test_registers_that_are_not_there();
    test_faults();
    test_another_version();
    test_texts_that_are_wrong();
    test_a_model_that_cannot_be_made_to_fail();
    return UNIT_RESULT();
}
