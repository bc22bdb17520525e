/* A driver and the model of its device in one process: what the HAL for the host promises, and what a driver tells of a
 * device that fails. */
#include "unit.h"

#include <stdint.h>
#include <string.h>

#include "adder.h"
#include "rack.h"
#include "uaccel_hal.h"

#define SECTION(name) __attribute__((section(name), aligned(16)))

extern const struct uaccel_device_model adder_device;

/* Another device: its one register counts how often it was read. */
static uint32_t looks;

static void reset_looks(void *state, const struct uaccel_bus *bus)
{
    (void)state;
    (void)bus;
    looks = 0;
}

static uint32_t look(void *state, uint32_t offset)
{
    (void)state;
    (void)offset;
    looks++;
    return looks;
}

static const struct uaccel_device_model slow = {
    .name = "slow", .window = 4, .start = 4, .reset = reset_looks, .read = look};

struct uaccel_rack_device uaccel_rack[] = {{.model = &adder_device}, {.model = &slow}};
const uint32_t uaccel_rack_count = 2;

enum { SIZE = 100 };

static int8_t arena[SIZE] SECTION("uaccel_arena");
static int8_t io[SIZE] SECTION("uaccel_io");
static const int8_t constants[SIZE] SECTION("uaccel_device_constants") = {1, 2, 3};
static int8_t private_to_the_cpu[SIZE];

static int32_t activate(void)
{
    return TVMDeviceAdderActivate(uaccel_hal_device("adder"));
}

static void test_what_it_computes(void)
{
    CHECK_EQ(activate(), 0);
    CHECK_EQ(adder_add(constants, arena, SIZE, 5), 0);
    CHECK_EQ(adder_add(arena, io + 1, SIZE - 1, -6), 0);
    CHECK_EQ(io[0], 0);
    for (int i = 1; i < SIZE; ++i) {
        CHECK_EQ(arena[i], constants[i] + 5);
        CHECK_EQ(io[i], constants[i - 1] - 1);
    }
    CHECK_EQ(adder_device.cycles(adder_device.state), SIZE + 12 + SIZE - 1 + 12);
    CHECK_EQ(TVMDeviceAdderDeactivate(uaccel_hal_device("adder")), 0);
}

static void test_addresses(void)
{
    CHECK(uaccel_hal_address(arena) != 0);
    CHECK_EQ(uaccel_hal_address(arena + 7) - uaccel_hal_address(arena), 7);
    CHECK_EQ(uaccel_hal_address(arena) % 16, 0);
    CHECK(uaccel_hal_address(constants) != uaccel_hal_address(io));
    CHECK_EQ(uaccel_hal_address(private_to_the_cpu), 0);
    CHECK_EQ(uaccel_hal_address(NULL), 0);
}

static void test_memory_that_the_device_does_not_reach(void)
{
    CHECK_EQ(activate(), 0);
    CHECK_EQ(adder_add(private_to_the_cpu, arena, SIZE, 1), UACCEL_ACCELERATOR_BUS);
    CHECK_EQ(adder_add(arena, private_to_the_cpu, SIZE, 1), UACCEL_ACCELERATOR_BUS);
    CHECK_EQ(adder_add(arena, arena + SIZE - 16, 200, 1), UACCEL_ACCELERATOR_BUS);
    CHECK_EQ(adder_add(io, (int8_t *)(uintptr_t)constants, SIZE, 1), UACCEL_ACCELERATOR_BUS);
    CHECK_EQ(constants[2], 3);
}

/* What activating it, the first job and the second return. */
static void check_fault(const char *fault, int32_t active, int32_t first, int32_t second)
{
    CHECK(uaccel_rack_let_fail(fault) == NULL);
    uaccel_rack_reset();
    CHECK_EQ(activate(), active);
    CHECK_EQ(adder_add(arena, io, 16, 1), first);
    CHECK_EQ(adder_add(arena, io, 16, 1), second);
    uaccel_rack[0].fault = UACCEL_FAULT_NONE;
    uaccel_rack_reset();
}

static void test_faults(void)
{
    check_fault("", 0, 0, 0);
    check_fault("adder:hang@2", 0, 0, UACCEL_ACCELERATOR_TIMEOUT);
    check_fault("adder:error", 0, UACCEL_ACCELERATOR_ERROR, UACCEL_ACCELERATOR_ERROR);
    check_fault("adder:vanish", UACCEL_ACCELERATOR_GONE, UACCEL_ACCELERATOR_GONE, UACCEL_ACCELERATOR_GONE);
    check_fault("adder:vanish@2", 0, 0, UACCEL_ACCELERATOR_GONE);
    check_fault("adder:version", UACCEL_ACCELERATOR_VERSION, 0, 0);
    check_fault("adder:dma@3", 0, 0, UACCEL_ACCELERATOR_BUS);
}

static void test_a_device_that_is_not_there(void)
{
    CHECK(uaccel_hal_device("subber") == NULL);
    CHECK_EQ(uaccel_hal_read32(NULL, 0), UINT32_MAX);
    uaccel_hal_write32(NULL, 0, 1);
    CHECK_EQ(TVMDeviceAdderActivate(NULL), UACCEL_ACCELERATOR_GONE);
    CHECK_EQ(uaccel_hal_wait(NULL, 0, 1, 1, 10), UACCEL_ACCELERATOR_GONE);
    CHECK_EQ(uaccel_hal_check(NULL, 0, 1, UACCEL_ACCELERATOR_IDENTITY), UACCEL_ACCELERATOR_GONE);
}

/* Waits that end after so many looks, whatever they return. */
static void check_looks(uint32_t polls, uint32_t value, int32_t status, uint32_t wanted)
{
    uaccel_rack_reset();
    CHECK_EQ(uaccel_hal_wait(uaccel_hal_device("slow"), 0, 0xFF, value, polls), status);
    CHECK_EQ(looks, wanted);
}

static void test_waiting_ends(void)
{
    check_looks(10, 1, 0, 1);
    check_looks(10, 10, 0, 10);
    check_looks(9, 10, UACCEL_ACCELERATOR_TIMEOUT, 9);
    check_looks(1, 10, UACCEL_ACCELERATOR_TIMEOUT, 1);
    check_looks(0, 10, UACCEL_ACCELERATOR_TIMEOUT, 1);
    check_looks(0, 1, 0, 1);
    check_looks(1000, 0, 0, 256);
}

int main(void)
{
    test_what_it_computes();
    test_addresses();
    test_memory_that_the_device_does_not_reach();
    test_faults();
    test_a_device_that_is_not_there();
    test_waiting_ends();
    uaccel_hal_clean(arena, SIZE);
    uaccel_hal_invalidate(arena, SIZE);
    return UNIT_RESULT();
}
