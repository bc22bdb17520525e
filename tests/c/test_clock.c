/* A device that works while time passes, in the rack: its life, its clock, its jobs. */
#include "unit.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "rack.h"
#include "trace.h"

static struct {
    uint32_t opened, closed, layer;
    uint64_t now, until;
    const struct uaccel_bus *bus;
} slow;

static int32_t open_slow(void *state)
{
    (void)state;
    slow.opened++;
    return 0;
}

static void close_slow(void *state)
{
    (void)state;
    slow.closed++;
}

static void reset_slow(void *state, const struct uaccel_bus *bus)
{
    (void)state;
    slow.bus = bus;
    slow.now = 0;
    slow.until = 0;
}

static void tick_slow(void *state, uint64_t cycles)
{
    (void)state;
    const bool worked = slow.now < slow.until;
    slow.now += cycles;
    if (worked && slow.now >= slow.until) {
        slow.bus->interrupt(slow.bus->context, 1);
    }
}

/* A job takes 100 cycles. */
static void write_slow(void *state, uint32_t offset, uint32_t value)
{
    (void)state;
    (void)value;
    slow.until = offset == 0 ? slow.now + 100 : slow.until;
}

static uint32_t read_slow(void *state, uint32_t offset)
{
    (void)state;
    (void)offset;
    return slow.now >= slow.until;
}

static uint64_t cycles_of_slow(const void *state)
{
    (void)state;
    return slow.now;
}

static void layer_of_slow(void *state, uint32_t layer)
{
    (void)state;
    slow.layer = layer;
}

/* Three of its cycles take as long as two of the CPU's. */
static const struct uaccel_device_model model = {
    .name = "slow",
    .window = 8,
    .reset = reset_slow,
    .read = read_slow,
    .write = write_slow,
    .cycles = cycles_of_slow,
    .open = open_slow,
    .tick = tick_slow,
    .close = close_slow,
    .layer = layer_of_slow,
    .clock = 3,
    .cpu_clock = 2,
};

struct uaccel_rack_device uaccel_rack[] = {{.model = &model}};
const uint32_t uaccel_rack_count = 1;

static void interrupt(void *context, int32_t level)
{
    (void)context;
    (void)level;
}

static const struct uaccel_bus bus = {NULL, NULL, NULL, interrupt, NULL, NULL, NULL};

static void test_the_clocks_are_in_their_ratio(void)
{
    CHECK(uaccel_rack_begin(&bus));
    CHECK(uaccel_rack_has_clock());
    for (int i = 0; i < 7; ++i) {
        uaccel_rack_pass(1); /* no rest is lost */
    }
    CHECK_EQ(slow.now, 10);
    uaccel_rack_pass(100);
    CHECK_EQ(slow.now, 160);
}

static void test_a_job_goes_on_while_time_passes(void)
{
    uaccel_rack_reset();
    uaccel_rack_write(uaccel_rack, 0, 1);
    CHECK_EQ(uaccel_rack_read(uaccel_rack, 4), 0);
    uaccel_rack_pass(66);
    CHECK_EQ(uaccel_rack_read(uaccel_rack, 4), 0);
    uaccel_rack_pass(1);
    CHECK_EQ(uaccel_rack_read(uaccel_rack, 4), 1);
}

static void test_it_knows_the_layer(void)
{
    uaccel_rack_layer(7);
    CHECK_EQ(slow.layer, 7);
}

static void test_it_is_opened_and_closed_once(void)
{
    CHECK(uaccel_rack_begin(&bus));
    CHECK_EQ(slow.opened, 1);
    uaccel_rack_end();
    uaccel_rack_end();
    CHECK_EQ(slow.closed, 1);
}

/* From the start to the interrupt, or to the last look before the next start. */
static void test_the_timeline_has_its_jobs(void)
{
    static const char name[] = "test_clock.timeline";
    char text[200] = "";
    FILE *const made = fopen(name, "w+");
    CHECK(made != NULL && uaccel_timeline_open(name) && uaccel_rack_begin(&bus));
    uaccel_rack_write(uaccel_rack, 0, 1);
    uaccel_rack_pass(200);
    uaccel_rack_write(uaccel_rack, 0, 1);
    uaccel_rack_pass(20);
    (void)uaccel_rack_read(uaccel_rack, 4);
    uaccel_rack_pass(2);
    uaccel_rack_end();
    CHECK(made != NULL && fread(text, 1, sizeof text - 1, made) > 0);
    CHECK(strcmp(text, "slow job 0 300\nslow job 300 330\n") == 0);
    if (made != NULL) {
        fclose(made);
    }
    remove(name);
}

int main(void)
{
    test_the_clocks_are_in_their_ratio();
    test_a_job_goes_on_while_time_passes();
    test_it_knows_the_layer();
    test_it_is_opened_and_closed_once();
    test_the_timeline_has_its_jobs();
    return UNIT_RESULT();
}
