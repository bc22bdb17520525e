/* The console's ring buffer: order, room, and where a loss is told. */
#define UACCEL_PORT_RECEIVE_BYTES 16

#include "../../firmware/ports/common/receive_ring.h"
#include "unit.h"

static struct uaccel_ring ring;

static void put(const char *bytes)
{
    for (; *bytes != '\0'; ++bytes) {
        CHECK(uaccel_ring_has_room(&ring));
        uaccel_ring_put(&ring, (uint8_t)*bytes);
    }
}

/* What comes out next must be these bytes, with that room for them. */
static void take(const char *bytes, uint32_t room)
{
    uint8_t got[32] = {0};
    int32_t length = 0;
    while (bytes[length] != '\0') {
        length++;
    }
    CHECK_EQ(uaccel_ring_take(&ring, got, room), length);
    for (int32_t i = 0; i < length; ++i) {
        CHECK_EQ(got[i], bytes[i]);
    }
}

static void take_loss(void)
{
    uint8_t got[4];
    CHECK_EQ(uaccel_ring_take(&ring, got, sizeof got), UACCEL_PORT_OVERRUN);
}

static void from(uint32_t start)
{
    ring.written = start;
    ring.read = start;
    ring.lost = false;
}

static void test_order_and_room(void)
{
    CHECK(uaccel_ring_is_empty(&ring));
    take("", 8);
    put("abcdefgh");
    CHECK(!uaccel_ring_is_empty(&ring));
    take("abc", 3);
    put("ijklmnopqrs");
    CHECK(!uaccel_ring_has_room(&ring));
    take("defghijklmnopqrs", 32);
    CHECK(uaccel_ring_is_empty(&ring));
}

static void test_a_loss_is_told_where_it_was(void)
{
    put("abc");
    uaccel_ring_lost(&ring);
    put("de");
    uaccel_ring_lost(&ring); /* before the first is told: one with it */
    take("ab", 2);
    take("c", 8);
    take_loss();
    take("de", 8);
    take("", 8);
}

static void test_a_loss_alone_is_told(void)
{
    uaccel_ring_lost(&ring);
    CHECK(!uaccel_ring_is_empty(&ring));
    take_loss();
    CHECK(uaccel_ring_is_empty(&ring));
    put("x");
    take("x", 8);
}

int main(void)
{
    static const uint32_t starts[] = {0, 7, 0xFFFFFFF0u, 0xFFFFFFFEu};
    for (uint32_t i = 0; i < sizeof starts / sizeof starts[0]; ++i) {
        from(starts[i]); /* the counters of a ring that has been in use for long run over */
        test_order_and_room();
        test_a_loss_is_told_where_it_was();
        test_a_loss_alone_is_told();
    }
    return UNIT_RESULT();
}
