#include "uaccel_infer.h"

#include <stddef.h>

#include "uaccel_account.h"
#include "uaccel_frame.h"
#include "uaccel_model.h"
#include "uaccel_port.h"

struct tally {
    uint32_t done; /* inferences */
    uint32_t stack;
    int32_t status;
    uint64_t ticks;
    uint64_t least; /* ticks, of the fastest */
    uint64_t instructions;
};

/* What the rows took that were fed for the next inference. */
static struct {
    uint32_t stack;
    uint64_t ticks;
    uint64_t instructions;
} fed;

int32_t uaccel_infer_feed(const uint8_t *bytes, uint32_t count, bool begins)
{
    if (begins) {
        fed.stack = 0;
        fed.ticks = 0;
        fed.instructions = 0;
        (void)uaccel_model.feed(NULL, 0);
    }
    uaccel_port_stack_paint();
    const uint64_t ticks = uaccel_port_ticks();
    const uint64_t before = uaccel_port_instructions();
    const int32_t status = uaccel_model.feed(bytes, count);
    fed.instructions += uaccel_port_instructions() - before;
    fed.ticks += uaccel_port_ticks() - ticks;
    const uint32_t stack = uaccel_port_stack_used();
    fed.stack = stack > fed.stack ? stack : fed.stack;
    return status;
}

/* The stack is painted once: that takes time, and empties caches. */
static void infer_once(struct tally *tally)
{
    const bool first = tally->done == 0;
    if (first) {
        uaccel_port_stack_paint();
    }
    uaccel_account_begin();
    const uint64_t ticks_before = uaccel_port_ticks();
    const uint64_t before = uaccel_port_instructions();
    tally->status = uaccel_model.run();
    const uint64_t after = uaccel_port_instructions();
    const uint64_t taken = uaccel_port_ticks() - ticks_before + fed.ticks;
    if (first) {
        tally->stack = uaccel_port_stack_used();
        tally->stack = fed.stack > tally->stack ? fed.stack : tally->stack;
    }
    tally->ticks += taken;
    tally->least = taken < tally->least ? taken : tally->least;
    tally->instructions = after == UACCEL_PORT_NO_COUNT ? after : tally->instructions + (after - before) + fed.instructions;
    tally->done++;
}

static void write_reply(const struct tally *tally, const struct uaccel_account *idle, uint8_t *reply)
{
    uaccel_put32(reply + UACCEL_RUN_REPLY_STATUS_AT, (uint32_t)tally->status);
    uaccel_put64(reply + UACCEL_RUN_REPLY_TICKS_AT, tally->ticks);
    uaccel_put64(reply + UACCEL_RUN_REPLY_LEAST_TICKS_AT, tally->least);
    uaccel_put64(reply + UACCEL_RUN_REPLY_INSTRUCTIONS_AT, tally->instructions);
    uaccel_put32(reply + UACCEL_RUN_REPLY_STACK_BYTES_AT, tally->stack);
    uaccel_put32(reply + UACCEL_RUN_REPLY_CALLS_AT, uaccel_account_total().calls - idle->calls);
    uaccel_put64(reply + UACCEL_RUN_REPLY_CYCLES_AT, uaccel_account_total().cycles - idle->cycles);
}

bool uaccel_infer(uint32_t count, bool continues, bool (*is_called_off)(void), uint8_t *reply)
{
    const struct uaccel_account idle = uaccel_account_total();
    struct tally tally = {0, 0, 0, 0, UINT64_MAX, 0};
    do {
        if (tally.done != 0 && is_called_off()) {
            return false;
        }
        if (uaccel_model.reset != NULL && !continues) {
            uaccel_model.reset();
        }
        infer_once(&tally);
    } while (tally.status == 0 && tally.done < count);
    write_reply(&tally, &idle, reply);
    return true;
}
